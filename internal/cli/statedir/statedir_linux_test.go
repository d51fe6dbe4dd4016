package statedir_test

import (
	"testing"

	"gcsup/internal/cli/statedir"
)

func TestDefault(t *testing.T) {
	for _, c := range []struct{ env, home, xdg, want string }{
		{"", "/home/u", "", "/home/u/.local/state/gcsup"},
		{"", "/home/u", "/xdg", "/xdg/gcsup"},
		{"", "/home/u", "not/absolute", "/home/u/.local/state/gcsup"},
		{"", "", "/xdg", "/xdg/gcsup"},
		{"/env", "/home/u", "/xdg", "/env"},
	} {
		t.Setenv(statedir.Env, c.env)
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_STATE_HOME", c.xdg)
		if got, err := statedir.Default(); err != nil || got != c.want {
			t.Errorf("Default with %+v = %q, %v, want %q", c, got, err, c.want)
		}
	}
	t.Setenv(statedir.Env, "")
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	if got, err := statedir.Default(); err == nil {
		t.Errorf("Default without a home = %q, want an error", got)
	}
}
