package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

var testRules = rules{settle: 10 * time.Second, attempts: 3, policy: backoff.Policy{Jitter: backoff.NoJitter}}

// identity returns an identity whose bytes were changed at second mod, and whose name at second change.
func identity(size, mod, change int64) chunk.Identity {
	return chunk.Identity{Size: size, ModTimeNS: mod * 1e9, ChangeTimeNS: change * 1e9, Inode: 1}
}

// at returns the moment n seconds after the outbox was opened. The outbox was opened 1,000 s after 1970.
func at(n int64) moment {
	return moment{at: time.Duration(n) * time.Second, wall: (1000 + n) * 1e9}
}

// TestComplete checks when a file is complete.
func TestComplete(t *testing.T) {
	for _, tt := range []struct {
		name    string
		writers sourcefile.Writers
		id      chunk.Identity
		since   int64 // when it was first seen, in seconds
		now     int64
		want    time.Duration // 0 if it is complete
	}{
		{"renamed into the directory", sourcefile.NoWriters, identity(5, 900, 1000), 0, 0, 0},
		{"renamed, but open for writing", sourcefile.HasWriters, identity(5, 900, 1000), 0, 50, 10 * time.Second},
		{"renamed, writers unknown", sourcefile.WritersUnknown, identity(5, 900, 1000), 0, 0, 10 * time.Second},
		{"written now", sourcefile.NoWriters, identity(5, 1000, 1000), 0, 0, 10 * time.Second},
		{"written 4 s ago", sourcefile.NoWriters, identity(5, 996, 996), 0, 0, 6 * time.Second},
		{"written long ago", sourcefile.NoWriters, identity(5, 900, 900), 0, 0, 0},
		{"written long ago, writers unknown", sourcefile.WritersUnknown, identity(5, 900, 900), 0, 0, 10 * time.Second},
		{"seen 4 s ago, writers unknown", sourcefile.WritersUnknown, identity(5, 900, 900), 6, 10, 6 * time.Second},
		{"seen 10 s ago, writers unknown", sourcefile.WritersUnknown, identity(5, 900, 900), 0, 10, 0},
		{"modified in the future", sourcefile.NoWriters, identity(5, 5000, 900), 0, 0, 10 * time.Second},
		{"modified in the future, seen 10 s ago", sourcefile.NoWriters, identity(5, 5000, 900), 0, 10, 0},
		{"no change time, as on Windows", sourcefile.WritersUnknown, identity(5, 900, 0), 0, 10, 0},
	} {
		f := file{phase: settling, id: tt.id, since: at(tt.since).at}
		if got := testRules.rest(f, tt.writers, at(tt.now)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestSteps plays sequences of events. Each line is an event, the phase after it, and the action.
func TestSteps(t *testing.T) {
	whole, edited := identity(5, 900, 1000), identity(6, 900, 1001)
	written := identity(5, 1000, 1000)
	script := map[string]struct {
		event
		after int64 // seconds
	}{
		"glance":         {event{kind: glanced, id: whole}, 0},
		"glance edited":  {event{kind: glanced, id: edited}, 0},
		"inspect":        {event{kind: inspected, id: whole, writers: sourcefile.NoWriters}, 0},
		"inspect fresh":  {event{kind: inspected, id: written, writers: sourcefile.NoWriters}, 0},
		"inspect edited": {event{kind: inspected, id: edited, writers: sourcefile.NoWriters}, 0},
		"later":          {event{kind: expired}, 10},
		"absent":         {event{kind: absent}, 0},
		"take":           {event{kind: taken}, 0},
		"verify":         {event{kind: verified}, 0},
		"remember":       {event{kind: remembered}, 0},
		"disposed":       {event{kind: ended, outcome: disposed}, 0},
		"recorded":       {event{kind: ended, outcome: recorded}, 0},
		"altered":        {event{kind: ended, outcome: altered}, 0},
		"vanished":       {event{kind: ended, outcome: vanished}, 0},
		"interrupted":    {event{kind: ended, outcome: interrupted}, 0},
		"refused":        {event{kind: ended, outcome: unusable}, 0},
		"unavailable":    {event{kind: ended, outcome: unavailable}, 0},
		"hopeless":       {event{kind: ended, outcome: hopeless}, 0},
		"invalid":        {event{kind: ended, outcome: invalid}, 0},
		"unreadable":     {event{kind: ended, outcome: unreadable}, 0},
		"full":           {event{kind: ended, outcome: full}, 0},
		"at once":        {event{kind: expired}, 0},
		"stranded":       {event{kind: stranded}, 0},
	}
	actions := []string{"-", "look", "queue", "give up", "forget", "forget and look", "halt"}
	for name, steps := range map[string]string{
		"removed":                    "glance: settling look; inspect: complete queue; take: uploading -; verify: disposing -; disposed: disposing forget and look",
		"kept":                       "inspect: complete queue; take: uploading -; verify: disposing -; recorded: kept look; inspect: kept -; glance: kept -; glance edited: settling look",
		"kept, and edited meanwhile": "inspect: complete queue; take: uploading -; recorded: kept look; inspect edited: complete queue",
		"remembered":                 "glance: settling look; remember: kept -; inspect: kept -; absent: kept forget",
		"settles":                    "inspect fresh: settling -; later: settling look; inspect fresh: complete queue",
		"edited while it waits":      "inspect: complete queue; glance edited: settling look; inspect edited: complete queue",
		"edited while it is sent":    "inspect: complete queue; take: uploading -; glance edited: uploading -; inspect edited: uploading -; altered: waiting -; inspect edited: complete queue",
		"gone while it is sent":      "inspect: complete queue; take: uploading -; absent: uploading -; vanished: uploading forget and look",
		"gone":                       "inspect: complete queue; absent: complete forget",
		"fails and succeeds":         "inspect: complete queue; take: uploading -; refused: waiting -; later: settling look; inspect: complete queue; take: uploading -; disposed: uploading forget and look",
		"fails three times":          "inspect: complete queue; take: uploading -; refused: waiting -; take: uploading -; refused: waiting -; take: uploading -; refused: failed give up; stranded: failed -; later: failed give up; glance edited: settling look",
		"an outage does not count":   "inspect: complete queue; take: uploading -; unavailable: waiting -; take: uploading -; unavailable: waiting -; take: uploading -; unavailable: waiting -; take: uploading -; unavailable: waiting -",
		"a change does not count":    "inspect: complete queue; take: uploading -; altered: waiting -; take: uploading -; altered: waiting -; take: uploading -; altered: waiting -; take: uploading -; altered: waiting -",
		"replaced, it starts over":   "inspect: complete queue; take: uploading -; refused: waiting -; take: uploading -; refused: waiting -; inspect edited: complete queue; take: uploading -; refused: waiting -",
		"hopeless twice":             "inspect: complete queue; take: uploading -; hopeless: waiting -; take: uploading -; hopeless: failed give up",
		"hopeless, not in a row":     "inspect: complete queue; take: uploading -; hopeless: waiting -; take: uploading -; unavailable: waiting -; take: uploading -; hopeless: waiting -",
		"hopeless, and replaced":     "inspect: complete queue; take: uploading -; hopeless: waiting -; inspect edited: complete queue; take: uploading -; hopeless: waiting -",
		"invalid may be the setting": "inspect: complete queue; take: uploading -; invalid: waiting -; take: uploading -; invalid: waiting -; take: uploading -; invalid: waiting -; take: uploading -; invalid: waiting -",
		"objects cannot be read":     "inspect: complete queue; take: uploading -; unreadable: waiting -; take: uploading -; unreadable: waiting halt",
		"no space to save":           "inspect: complete queue; take: uploading -; full: waiting -; at once: settling look; inspect: complete queue; take: uploading -; disposed: uploading forget and look",
		"the outbox stops":           "inspect: complete queue; take: uploading -; interrupted: complete -",
	} {
		f, now := file{due: never, id: chunk.Identity{Size: -1}}, int64(0)
		for step := range strings.SplitSeq(steps, "; ") {
			what, want, _ := strings.Cut(step, ": ")
			e, ok := script[what]
			if !ok {
				t.Fatalf("no event %q", what)
			}
			now += e.after
			var a action
			f, a = testRules.step(f, e.event, at(now))
			if got := fmt.Sprint(f.phase, " ", actions[a]); got != want {
				t.Errorf("%s: after %q: %s, want %s", name, what, got, want)
			}
		}
	}
}

// TestAttempts checks which failures count.
func TestAttempts(t *testing.T) {
	f := file{phase: complete}
	now := at(0)
	if ordered := (&rules{ordered: true}); !ordered.counts(refused, f, now) || testRules.counts(refused, f, now) || !testRules.counts(unusable, f, now) {
		t.Error("before any file is uploaded: a refusal counts only if the order must be kept")
	}
	if ordered := (&rules{ordered: true}); !ordered.counts(invalid, f, now) || testRules.counts(invalid, f, now) || !testRules.counts(hopeless, f, now) || testRules.counts(unreadable, f, now) {
		t.Error("before any file is uploaded: an invalid request may be the fault of the settings")
	}
	for n, tt := range []struct {
		outcome  attemptEnd
		uploaded uint32 // other files, since the last failure
		want     uint16
	}{
		{unavailable, 0, 0}, {unavailable, 1, 1}, {unavailable, 0, 1}, {refused, 0, 2}, {altered, 1, 2}, {unavailable, 0, 2}, {unavailable, 1, 3},
	} {
		f, _ = testRules.step(f, event{kind: taken}, now)
		now.uploaded += tt.uploaded
		f, _ = testRules.step(f, event{kind: ended, outcome: tt.outcome}, now)
		if f.attempts != tt.want {
			t.Errorf("failure %d: %d count, want %d", n+1, f.attempts, tt.want)
		}
	}
	if f.phase != failed || !f.compare {
		t.Errorf("%+v, want a failed file whose object may exist", f)
	}
}

// TestWaits checks that the waits grow, and are bounded.
func TestWaits(t *testing.T) {
	r := testRules
	r.attempts = 0
	f, now := file{phase: complete}, at(0)
	var waits []time.Duration
	for range 9 {
		f, _ = r.step(f, event{kind: taken}, now)
		f, _ = r.step(f, event{kind: ended, outcome: unusable}, now)
		waits = append(waits, (f.due-now.at)/time.Second)
		now.at = f.due
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 32, 32, 32}; !slices.Equal(waits, want) {
		t.Errorf("waits of %d s, want %d", waits, want)
	}
}

// TestEverySequence walks all sequences of events, and checks what must hold after each.
func TestEverySequence(t *testing.T) {
	whole, edited := identity(5, 900, 1000), identity(6, 1001, 1001)
	outside := []event{
		{kind: glanced, id: whole}, {kind: glanced, id: edited}, {kind: absent}, {kind: expired},
		{kind: inspected, id: whole, writers: sourcefile.NoWriters}, {kind: inspected, id: edited, writers: sourcefile.NoWriters}, {kind: inspected, id: whole, writers: sourcefile.HasWriters},
	}
	var endings []event
	for o := disposed; o <= full; o++ {
		endings = append(endings, event{kind: ended, outcome: o})
	}
	visited := map[file]bool{}
	var walk func(f file)
	walk = func(f file) {
		key := f
		key.since, key.due = 0, 0
		if visited[key] || f.failures > 5 {
			return
		}
		visited[key] = true
		events := slices.Clone(outside)
		switch f.phase {
		case complete:
			events = append(events, event{kind: taken})
		case uploading:
			events = append(events, event{kind: verified})
			fallthrough
		case disposing:
			events = append(events, endings...)
		case failed:
			events = append(events, event{kind: stranded})
		}
		for _, e := range events {
			next, a := testRules.step(f, e, at(2))
			what := fmt.Sprintf("%v + %v/%v = %v", f.phase, e.kind, e.outcome, next.phase)
			gone := a == forget || a == forgetAndLook
			switch {
			case f.phase.busy() && e.kind != ended && e.kind != verified && (next != f || a != nothing):
				t.Errorf("%s: an attempt is under way, and something else changes the file", what)
			case next.phase == complete && f.phase != complete && e.outcome != interrupted && (a != queue || e.writers != sourcefile.NoWriters):
				t.Errorf("%s: it is complete without an inspection, or not queued", what)
			case a == queue && next.phase != complete, a == giveUp && next.phase != failed:
				t.Errorf("%s: the action does not fit", what)
			case next.phase == waiting && next.due == never, !gone && next.phase == settling && a != look && next.due == never:
				t.Errorf("%s: it is forgotten: nothing looks at it again", what)
			case next.phase == kept && e.kind == ended && e.outcome != recorded:
				t.Errorf("%s: it counts as uploaded", what)
			case e.kind == ended && e.outcome >= unusable && !next.compare:
				t.Errorf("%s: the object may exist, and is not compared", what)
			case gone && f.phase.busy() && e.kind != ended:
				t.Errorf("%s: it is forgotten during an attempt", what)
			}
			if !gone {
				walk(next)
			}
		}
	}
	walk(file{id: chunk.Identity{Size: -1}, due: never})
	t.Logf("%d states", len(visited))
	if len(visited) < 50 {
		t.Errorf("only %d states", len(visited))
	}
}

// TestStale checks which temporary files are removed.
func TestStale(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, tt := range []struct {
		id   chunk.Identity
		want bool
	}{
		{identity(1, 1, 1e9-25*3600), true},
		{identity(1, 1, 1e9-23*3600), false}, // the source is old
		{identity(1, 1, 1e9+3600), false},
		{identity(1, 1, 0), false}, // the system has no change time
	} {
		if got := stale(tt.id, now); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.id, got, tt.want)
		}
	}
}

// TestUnsaved checks that an upload that cannot be saved is repeated at once without, and that this does not count. A
// failure of that, for the same reason, waits like any other.
func TestUnsaved(t *testing.T) {
	f, now := file{phase: uploading}, at(5)
	f, _ = testRules.step(f, event{kind: ended, outcome: full}, now)
	if !f.unsaved() || f.due != now.at || f.failures != 0 || f.attempts != 0 {
		t.Errorf("%+v, want an attempt at once that saves nothing", f)
	}
	f.phase = uploading
	f, _ = testRules.step(f, event{kind: ended, outcome: full}, now)
	if f.unsaved() || f.due <= now.at || f.failures != 1 {
		t.Errorf("%+v, want a wait", f)
	}
}

// TestAnswersAboutOneFile checks after how many attempts a file is given up, of at most 10.
func TestAnswersAboutOneFile(t *testing.T) {
	for _, tt := range []struct {
		outcome  attemptEnd
		attempts int // 0 for no limit
		ordered  bool
		want     int // 0 for never
	}{
		{hopeless, 10, false, 2}, {hopeless, 10, true, 2}, {hopeless, 1, false, 1}, {hopeless, 0, false, 0},
		{invalid, 10, true, 2}, {invalid, 10, false, 0},
		{unusable, 10, false, 10}, {refused, 10, true, 10}, {unavailable, 10, true, 0},
	} {
		r := rules{attempts: tt.attempts, ordered: tt.ordered, policy: testRules.policy}
		f, got := file{}, 0
		for n := 1; n <= 20 && got == 0; n++ {
			f.phase = uploading
			var a action
			if f, a = r.step(f, event{kind: ended, outcome: tt.outcome}, at(0)); a == giveUp {
				got = n
			}
		}
		if got != tt.want {
			t.Errorf("%+v: given up after %d attempts", tt, got)
		}
	}
}
