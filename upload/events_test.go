package upload

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/grace"
	"gcsup/upload/internal/engine"
)

// eventsTo returns events at a fixed position, and the observed events so far. The
// observer calls hold before it returns.
func eventsTo(hold func(Event)) (*events, *[]Event) {
	var seen []Event
	var at engine.Position
	at.Size.Store(100)
	at.Sent.Store(20)
	at.Committed.Store(10)
	e := newEvents(context.Background(), &Uploader{opts: Options{Observer: func(v Event) {
		seen = append(seen, v)
		hold(v)
	}}}, &label{names: names{upload: 7, id: "id", spec: Spec{Bucket: "bkt", Object: "obj"}}}, (&progress{whole: &at}).describe)
	return e, &seen
}

func kindsOf(seen []Event) (kinds []EventKind) {
	for _, v := range seen {
		kinds = append(kinds, v.Kind)
	}
	return kinds
}

// TestMergedEventIsNotEarly checks that a merged event is not delivered before an older one that is
// still in the queue: its deltas would be wrong.
func TestMergedEventIsNotEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := eventsTo(func(Event) { time.Sleep(time.Second) })
		e.post(Event{Kind: Warning})
		synctest.Wait() // the observer holds the first event
		e.post(Event{Kind: Started})
		e.committed()
		if v, ok := e.nextMerged(); ok {
			t.Errorf("%v is delivered before Started", v.Kind)
		}
		time.Sleep(time.Minute)
		synctest.Wait() // for what the goroutine of the events wrote
		if got, want := kindsOf(*seen), []EventKind{Warning, Started, Progress}; !slices.Equal(got, want) {
			t.Errorf("observed %v, want %v", got, want)
		}
		e.close(t.Context(), nil)
	})
}

// TestEventsArriveInOrder checks that only Progress events can be dropped, and that
// close waits for the last event.
func TestEventsArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := eventsTo(func(Event) { time.Sleep(time.Second) })
		want := []EventKind{Started, Waiting, Warning, Restarted, Warning, Resumed}
		e.post(Event{Kind: want[0]})
		synctest.Wait() // the observer holds the first event
		for _, kind := range want[1:] {
			e.committed() // superseded by the next event
			e.post(Event{Kind: kind})
		}
		e.committed()
		e.close(t.Context(), nil)
		got := kindsOf(*seen)
		if len(got) != len(want)+1 || got[len(want)] != Progress {
			t.Fatalf("observed %v, want %v and Progress", got, want)
		}
		for i, kind := range want {
			if got[i] != kind {
				t.Errorf("event %d is %v, want %v", i, got[i], kind)
			}
		}
		for _, v := range *seen {
			if v.ID != "id" || v.Spec.Object != "obj" || v.Size != 100 || v.Sent != 20 || v.Committed != 10 {
				t.Errorf("incomplete event %+v", v)
			}
		}
	})
}

// TestEventsMergeProgress checks that bytes that flow for a second make only a few
// events, and that no event delays the upload if the observer is slow.
func TestEventsMergeProgress(t *testing.T) {
	for _, slow := range []time.Duration{0, 700 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			e, seen := eventsTo(func(Event) { time.Sleep(slow) })
			start := time.Now()
			for range 1000 {
				time.Sleep(time.Millisecond)
				e.flowing()
			}
			if took := time.Since(start); took != time.Second {
				t.Errorf("reporting took %v with an observer that takes %v", took, slow)
			}
			e.close(t.Context(), nil)
			if n := len(*seen); n < 3 || n > 7 {
				t.Errorf("%d events in a second, want 3 to 7", n)
			}
		})
	}
}

// TestEventsReportCommitsAtOnce checks that a commit is reported at once, and not
// with a delay like flowing bytes.
func TestEventsReportCommitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := eventsTo(func(Event) {})
		for i := range 5 {
			e.committed()
			synctest.Wait()
			if len(*seen) != i+1 {
				t.Errorf("%d events after %d commits", len(*seen), i+1)
			}
		}
		e.close(t.Context(), nil)
	})
}

// TestEventsReportEveryComparison checks that the first step of a comparison is
// reported even if the next event follows at once.
func TestEventsReportEveryComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := eventsTo(func(Event) {})
		e.comparing(1, 9)
		e.comparing(2, 9)
		e.post(Event{Kind: Resumed})
		e.comparing(3, 9)
		e.post(Event{Kind: Resumed})
		e.close(t.Context(), nil)
		if got := kindsOf(*seen); len(got) != 4 || got[0] != Verifying || got[2] != Verifying {
			t.Fatalf("observed %v", got)
		}
		if v := (*seen)[0]; v.Compared != 1 || v.ToCompare != 9 {
			t.Errorf("first event = %+v", v)
		}
	})
}

// TestEventsCloseDoesNotWaitOnceCanceled checks that a blocked observer delays a
// canceled upload only for a short time, and then gets only the terminal event.
func TestEventsCloseDoesNotWaitOnceCanceled(t *testing.T) {
	for _, last := range []*Event{nil, {Kind: Interrupted}} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			e, seen := eventsTo(func(Event) { <-release })
			e.post(Event{Kind: Started})
			e.post(Event{Kind: Waiting})
			e.flowing()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			e.close(ctx, last)
			if took := time.Since(start); took != time.Second+grace.Event {
				t.Errorf("close took %v, want until the cancellation and %v", took, grace.Event)
			}
			e.post(Event{Kind: Warning}) // from a goroutine that still runs
			e.flowing()
			close(release)
			synctest.Wait()
			want := []EventKind{Started}
			if last != nil {
				want = append(want, Interrupted)
			}
			if got := kindsOf(*seen); !slices.Equal(got, want) {
				t.Errorf("observed %v, want %v", got, want)
			}
		})
	}
}

// TestEventsEndWithTheTerminalOne checks that flowing bytes are reported before the
// terminal event, and that no event follows it.
func TestEventsEndWithTheTerminalOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := eventsTo(func(Event) {})
		e.post(Event{Kind: Started})
		e.flowing()
		e.close(t.Context(), &Event{Kind: Done})
		e.flowing()
		synctest.Wait()
		if got := kindsOf(*seen); !slices.Equal(got, []EventKind{Started, Progress, Done}) {
			t.Errorf("observed %v", got)
		}
		if v := (*seen)[2]; v.Upload != 7 || v.ID != "id" || v.Sent != 20 || v.Time.IsZero() {
			t.Errorf("incomplete terminal event %+v", v)
		}
	})
}

// TestNoObserverNoGoroutine checks that all methods of nil events work.
func TestNoObserverNoGoroutine(t *testing.T) {
	e := newEvents(t.Context(), &Uploader{}, nil, nil)
	if e != nil {
		t.Fatal("there are events without an observer")
	}
	e.post(Event{})
	e.flowing()
	e.committed()
	e.comparing(1, 2)
	e.close(t.Context(), nil)
}
