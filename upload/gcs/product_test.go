package gcs

import (
	"runtime/debug"
	"testing"
)

// TestProduct checks that the User-Agent has the version of the module, which may be the
// program's own or a dependency.
func TestProduct(t *testing.T) {
	for name, c := range map[string]struct {
		modules []*debug.Module
		want    string
	}{
		"a dependency":   {[]*debug.Module{{Path: "program", Version: "v9.0.0"}, {Path: "gcsup", Version: "v1.2.3"}}, "gcsup/v1.2.3"},
		"a local change": {[]*debug.Module{{Path: "gcsup", Version: "v0.0.0-20261124000000-0123456789ab+dirty"}}, "gcsup/v0.0.0-20261124000000-0123456789ab+dirty"},
		"a test":         {[]*debug.Module{{Path: "gcsup", Version: "(devel)"}}, "gcsup/devel"},
		"no version":     {nil, "gcsup/devel"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := productOf("gcsup", c.modules); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
