package process_test

import (
	"testing"

	"gcsup/internal/cli/process"
)

func TestDefault(t *testing.T) {
	for _, c := range []struct{ env, home, xdg, want string }{
		{"", "/home/u", "", "/home/u/.local/state/gcsup"},
		{"", "/home/u", "/xdg", "/xdg/gcsup"},
		{"", "/home/u", "not/absolute", "/home/u/.local/state/gcsup"},
		{"", "", "/xdg", "/xdg/gcsup"},
		{"/env", "/home/u", "/xdg", "/env"},
	} {
		t.Setenv(process.StateDirEnv, c.env)
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_STATE_HOME", c.xdg)
		if got, err := process.StateDir(); err != nil || got != c.want {
			t.Errorf("Default with %+v = %q, %v, want %q", c, got, err, c.want)
		}
	}
	t.Setenv(process.StateDirEnv, "")
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	if got, err := process.StateDir(); err == nil {
		t.Errorf("Default without a home = %q, want an error", got)
	}
}
