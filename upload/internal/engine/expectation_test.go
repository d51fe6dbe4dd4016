package engine_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestExpectation checks the size of a source, at its end and before, and that it is confirmed once, at the end.
func TestExpectation(t *testing.T) {
	t.Parallel()
	unconfirmed := errors.New("not yet")
	for _, tt := range []struct {
		name      string
		size      *int64
		confirmed error
		n         int64
		err       error
	}{
		{"unknown", nil, nil, 7, nil},
		{"exact", new(int64(5)), nil, 5, nil},
		{"shorter", new(int64(5)), nil, 4, engine.ErrTruncated},
		{"longer", new(int64(5)), nil, 6, session.ErrInvalid},
		{"not confirmed", new(int64(5)), unconfirmed, 5, unconfirmed},
	} {
		calls := 0
		e := engine.Expectation{Size: tt.size, Confirm: func(context.Context) error { calls++; return tt.confirmed }}.Once()
		for range 2 {
			if err := e.CheckEnd(t.Context(), tt.n); !errors.Is(err, tt.err) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		wrong := tt.err != nil && tt.confirmed == nil
		if (calls == 1) == wrong || calls > 1 {
			t.Errorf("%s: confirmed %d times", tt.name, calls)
		}
		got, err := io.ReadAll(e.Reader(strings.NewReader(strings.Repeat("x", int(tt.n)))))
		if wrong != errors.Is(err, tt.err) && tt.err != nil || !wrong && (err != nil || int64(len(got)) != tt.n) {
			t.Errorf("%s: read %d bytes: %v", tt.name, len(got), err)
		}
	}
	if e := (engine.Expectation{}).Once(); e.Confirm != nil || e.CheckEnd(t.Context(), 1) != nil {
		t.Error("no expectation is not met")
	}
	r := engine.Expectation{Size: new(int64(9))}.Reader(deadline{strings.NewReader("")}).(interface{ SetReadDeadline(time.Time) error })
	if err := r.SetReadDeadline(time.Now()); err != io.ErrNoProgress {
		t.Errorf("the deadline of the reader: %v", err)
	}
	r = engine.Expectation{Size: new(int64(9))}.Reader(strings.NewReader("")).(interface{ SetReadDeadline(time.Time) error })
	if err := r.SetReadDeadline(time.Now()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a reader without a deadline: %v", err)
	}
}

type deadline struct{ io.Reader }

func (deadline) SetReadDeadline(time.Time) error { return io.ErrNoProgress }
