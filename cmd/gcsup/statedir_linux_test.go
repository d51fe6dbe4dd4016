package main

import (
	"testing"

	"gcsup/internal/exitcode"
	"gcsup/internal/failure"
)

func TestStateDirXDG(t *testing.T) {
	t.Setenv("GCSUP_STATE_DIR", "")
	for _, c := range []struct{ home, xdg, want string }{
		{"/home/u", "", "/home/u/.local/state/gcsup"},
		{"/home/u", "/xdg", "/xdg/gcsup"},
		{"/home/u", "not/absolute", "/home/u/.local/state/gcsup"},
		{"", "/xdg", "/xdg/gcsup"},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_STATE_HOME", c.xdg)
		if got, err := stateDir(""); err != nil || got != c.want {
			t.Errorf("stateDir with %+v = %q, %v, want %q", c, got, err, c.want)
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	if got, err := stateDir(""); err == nil || failure.Classify(err).Code != exitcode.Config {
		t.Errorf("stateDir without a home = %q, %v, want a configuration error", got, err)
	}
}
