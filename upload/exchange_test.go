package upload

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/session"
)

// mark returns a link that records each exchange that passes it, in both directions.
func mark(trace *strings.Builder, name string) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			trace.WriteString(name + "> ")
			defer trace.WriteString("<" + name + " ")
			return next(ctx, x)
		}
	}
}

// TestChainOrder checks that the first link is the outermost.
func TestChainOrder(t *testing.T) {
	var trace strings.Builder
	do := chain(mark(&trace, "a"), mark(&trace, "b"))
	r := do(t.Context(), exchange{do: func(context.Context, io.Reader) session.Reply {
		trace.WriteString("! ")
		return session.Reply{Status: 200}
	}})
	if got := trace.String(); got != "a> b> ! <b <a " || r.Status != 200 {
		t.Errorf("passed %q, status %d", got, r.Status)
	}
}

func TestNotingNotesEveryExchange(t *testing.T) {
	n := 0
	do := chain(noting(func(session.Reply) { n++ }))
	for range 3 {
		do(t.Context(), exchange{do: func(context.Context, io.Reader) session.Reply { return session.Reply{} }})
	}
	if n != 3 {
		t.Errorf("counted %d of 3", n)
	}
}

// TestWatchingStallsEndsTheExchange checks that the link passes the watched body
// on, and that the exchange ends with ErrStalled when no bytes flow.
func TestWatchingStallsEndsTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := chain(watchingStalls(time.Minute, 1<<10))
		start := time.Now()
		r := do(t.Context(), exchange{body: bytes.NewReader(make([]byte, 30<<10)), do: func(ctx context.Context, body io.Reader) session.Reply {
			if _, err := io.Copy(io.Discard, body); err != nil { // worth 30 s
				return session.Reply{Err: err}
			}
			<-ctx.Done()
			return session.Reply{Err: context.Cause(ctx)}
		}})
		if took := time.Since(start); r.Err != session.ErrStalled || took != time.Minute {
			t.Errorf("ended after %v: %v", took, r.Err)
		}
	})
}
