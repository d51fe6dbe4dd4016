package state_test

import (
	"errors"
	"io/fs"
	"testing"

	"gcsup/session"
	"gcsup/session/state"
)

// TestZeroUpload checks that the zero saved upload can neither be encoded nor adopted.
func TestZeroUpload(t *testing.T) {
	for _, saved := range []*state.Upload{nil, {}} {
		if data, err := state.Encode(saved); err == nil {
			t.Errorf("Encode(%v) = %q, want an error", saved, data)
		}
	}
	if err := state.Adopt(new(session.Client), new(state.Upload)); !errors.Is(err, session.ErrURIMismatch) {
		t.Errorf("Adopt: %v, want ErrURIMismatch", err)
	}
}

// TestZeroDir checks that each method of the zero Dir returns an error.
func TestZeroDir(t *testing.T) {
	var d state.Dir
	_, load := d.Load(t.Context(), "id")
	_, list := d.List(t.Context())
	_, lock := d.Lock(t.Context(), "id")
	for name, err := range map[string]error{
		"Load": load, "List": list, "Lock": lock, "Save": d.Save(t.Context(), &state.Upload{ID: "id"}),
		"Delete": d.Delete(t.Context(), "id"), "SetAside": d.SetAside(t.Context(), "id"), "Close": d.Close(),
	} {
		if !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v, want fs.ErrInvalid", name, err)
		}
	}
}
