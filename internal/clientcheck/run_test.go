package clientcheck

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// small has at least three chunks of the naive client.
var small = Options{Size: 2 << 20, Limit: 30 * time.Second}

func script(t *testing.T, name string) Script {
	t.Helper()
	i := slices.IndexFunc(Scripts(), func(s Script) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no script %q", name)
	}
	return Scripts()[i]
}

// conversation returns exchanges in short, for the message of a test.
func conversation(list []Exchange) string {
	var b strings.Builder
	for _, x := range list {
		b.WriteString("\n" + x.String())
	}
	return b.String()
}

// TestRightClientPasses checks that no script finds a fault in a right client, and that it meets all
// that are about sessions.
func TestRightClientPasses(t *testing.T) {
	unmet := []string{
		"part-503", "part-reply-lost", "complete-reply-lost", "complete-503", "compose-503", "compose-reply-lost",
	}
	for _, s := range Scripts() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			v, list, err := Run(t.Context(), client(none), s, small)
			require.NoError(t, err)
			if len(v.Failures) > 0 {
				t.Errorf("%+v%s", v, conversation(list))
			}
			if v.Met == slices.Contains(unmet, s.Name) {
				t.Errorf("met is %v%s", v.Met, conversation(list))
			}
			for _, x := range list {
				if x.data() && x.Received > 0 && (x.Until < x.At || x.Until == 0) {
					t.Errorf("the data of a request ends at %v: %v", x.Until, x)
				}
			}
			if v.Cost.Open > 1 || v.Cost.Others > 0 {
				t.Errorf("cost %+v%s", v.Cost, conversation(list))
			}
		})
	}
}

// TestBrokenClients checks that each bug is found by the script that is about it, and by name.
func TestBrokenClients(t *testing.T) {
	for _, test := range []struct {
		bug    bug
		script string
		want   string // one of the failures: "PART RULE"
	}{
		{silenceIsSuccess, "nothing-stored", "truth false-success"},
		{emptyIsOneByte, "empty", "protocol length"},
		{offByOne, "part-stored", "object wrong"},
		{ignoresRange, "part-stored", "protocol offset"},
		{ignoresRange, "nothing-stored", "protocol offset"},
		{assumesKept, "503-before", "protocol offset"},
		{emptyLastChunk, "whole-chunks", "protocol content-range"},
		{forgetsTotal, "all-stored", "protocol content-range"},
		{oddChunks, "plain", "protocol granularity"},
		{givesUpOn503, "503-before", "object absent"},
		{givesUpOn503, "503-after", "object absent"},
		{givesUpOn503, "503-query", "object absent"},
		{givesUpOn503, "500", "object absent"},
		{givesUpOn429, "429", "object absent"},
		{givesUpOn408, "408", "object absent"},
		{givesUpAtStart, "503-start", "object absent"},
		{givesUpAtStart, "429-start", "object absent"},
		{givesUpAtStart, "reset-start", "object absent"},
		{givesUpOnBreaks, "cut-early", "object absent"},
		{givesUpOnBreaks, "cut-in-chunk", "object absent"},
		{givesUpOnBreaks, "cut-before-end", "object absent"},
		{givesUpOnBreaks, "closed", "object absent"},
		{givesUpOnBreaks, "reply-lost", "object absent"},
		{lastIsLost, "cut-last", "object absent"},
		{lastIsLost, "cut-before-end", "object absent"},
		{lastIsLost, "final-reply-lost", "truth false-failure"},
		{lastIsLost, "final-reply-cut", "truth false-failure"},
		{wantsJSON, "html-502", "object absent"},
		{noTimeout, "stall", "truth no-end"},
		{asksDeadSession, "404", "truth no-end"},
		{asksDeadSession, "410", "protocol dead-session"},
		{givesUpOnGone, "404", "object absent"},
		{givesUpOnGone, "410", "object absent"},
		{readsInside, "410-around-429", "object absent"},
		{believes200, "html-200", "truth false-success"},
		{noChecksum, "damaged", "truth false-success"},
		{mixesSources, "source-changed", "object wrong"},
		{triesWithout, "exists", "object replaced"},
		{triesWithout, "appears", "object replaced"},
		{swallows, "499", "truth false-success"},
	} {
		t.Run(test.script, func(t *testing.T) {
			t.Parallel()
			o := small
			if test.want == "truth no-end" || test.bug == asksDeadSession {
				o.Limit = 4 * time.Second
			}
			v, list, err := Run(t.Context(), client(test.bug), script(t, test.script), o)
			require.NoError(t, err)
			found := slices.ContainsFunc(v.Failures, func(f Failure) bool { return string(f.Part)+" "+f.Rule == test.want })
			if !found {
				t.Errorf("bug %d: %+v, want %s%s", test.bug, v, test.want, conversation(list))
			}
		})
	}
}

// TestSecure checks a client that needs TLS.
func TestSecure(t *testing.T) {
	o := small
	o.TLS = true
	for _, name := range []string{"plain", "cut-in-chunk", "cut-before-end", "reply-lost", "killed"} {
		v, list, err := Run(t.Context(), client(none), script(t, name), o)
		require.NoError(t, err)
		if v.Outcome() != Passed {
			t.Errorf("%+v%s", v, conversation(list))
		}
	}
}

// TestCostOfRun checks what a run records of the cost: a client that does not ask sends a chunk twice, and one that is
// killed and starts over leaves a session behind.
func TestCostOfRun(t *testing.T) {
	v, list, err := Run(t.Context(), client(none), script(t, "source-changed"), small)
	require.NoError(t, err)
	if v.Cost.Open != 1 || v.Cost.Twice < small.Size/2-naiveChunk || v.Cost.Blind != 0 {
		t.Errorf("%+v%s", v.Cost, conversation(list))
	}
	v, list, err = Run(t.Context(), client(asksDeadSession), script(t, "reply-lost"), small) // which never asks
	require.NoError(t, err)
	if v.Outcome() != Passed || v.Cost.Blind != 1 || v.Cost.Twice != naiveChunk {
		t.Errorf("%+v%s", v.Cost, conversation(list))
	}
}

// TestEndOfCheck checks that the end of the context is an error of the check, and no verdict.
func TestEndOfCheck(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stopped := func(ctx context.Context, _ Task) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if v, _, err := Run(ctx, stopped, script(t, "plain"), small); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", v, err)
	}
}
