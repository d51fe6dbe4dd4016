package parts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestRemoval checks what Abandon and Clean remove at the service, before and after parts are stored, and with which requests. What
// the service refuses to remove stays in the saved upload, which is marked as over, and the next process removes it.
func TestRemoval(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		way      way
		state    string // fresh, sent, or half: the first part, and by compose half of the second one
		refuse   faults.Op
		left     string // after the refusal
		requests string
	}{
		{name: "fresh", way: byMultipart, state: "fresh", requests: "parts-abort"},
		{name: "half", way: byMultipart, state: "half", requests: "parts-abort"},
		{name: "sent", way: byMultipart, state: "sent", requests: "parts-abort"},
		{name: "refused", way: byMultipart, state: "sent", refuse: faults.OpPartsAbort, left: "3 parts", requests: "parts-abort!403"},
		{name: "fresh", way: byCompose, state: "fresh", requests: "get!404 get!404 get!404"},
		{name: "half", way: byCompose, state: "half", requests: "cancel!499 get!404 get!404 delete"},
		{name: "sent", way: byCompose, state: "sent", requests: "delete delete delete"},
		{name: "refused", way: byCompose, state: "sent", refuse: faults.OpDelete, left: "0000 0001 0002", requests: "delete!403 delete!403 delete!403"},
		{name: "cancel refused", way: byCompose, state: "half", refuse: faults.OpCancel, left: "", requests: "cancel!403 get!404 get!404 delete"},
	} {
		t.Run(test.way.name+" "+test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				u := w.begin(test.way)
				switch test.state {
				case "half":
					w.fault(faults.OpPartsPut, 2, -1, status(503))
					w.fault(faults.OpFinalize, 2, -1, status(503))
					if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrRetriesExhausted) {
						w.Fatal(err)
					}
					w.srv.ClearFaults()
				case "sent":
					w.refuseJoin(u)
				}
				if test.state != "fresh" {
					u = w.next(u)
				}
				w.requests()
				if test.refuse != "" {
					w.fault(test.refuse, 1, -1, status(403))
				}
				err := u.Abandon(w.Context())
				got, want := strings.Fields(w.requests()), strings.Fields(test.requests)
				slices.Sort(got) // sessions come first, but several requests are under way at a time
				slices.Sort(want)
				if !slices.Equal(got, want) {
					w.Errorf("the requests are %s, want %s", got, want)
				}
				if (err != nil) != (test.refuse != "") || err != nil && (!errors.Is(err, session.ErrPermission) || !strings.Contains(err.Error(), "not removed")) || w.stored() != test.left {
					w.Errorf("error %v, the service has %q, want %q", err, w.stored(), test.left)
				}
				w.srv.ClearFaults()
				if test.state != "fresh" && !w.token().Over {
					w.Error("the saved upload is not over")
				}
				if err != nil {
					u = w.next(u)
					if err := u.Clean(w.Context()); err != nil || w.stored() != "" {
						w.Errorf("error %v of the next process, the service has %q", err, w.stored())
					}
				}
			})
		})
	}
}

// TestFinish checks that what is left after the object was made is removed, or stays in the saved upload. Parts that are absent
// after the compose has deleted them are not asked for twice.
func TestFinish(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		way      way
		deletes  bool // the compose deletes its sources
		absent   bool // the temporary objects vanish
		refuse   faults.Op
		requests string
	}{
		{name: "completed", way: byMultipart, refuse: faults.OpPartsAbort, requests: ""},
		{name: "deleted by the compose", way: byCompose, deletes: true, requests: "delete!404 delete!404 delete!404"},
		{name: "deleted", way: byCompose, requests: "delete delete delete"},
		{name: "vanished", way: byCompose, absent: true, requests: "delete!404 delete!404 delete!404 delete!404 delete!404 delete!404"},
		{name: "refused", way: byCompose, refuse: faults.OpDelete, requests: "delete!403 delete!403 delete!403"},
	} {
		t.Run(test.way.name+" "+test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				u := w.begin(test.way)
				u.common().DeleteSources = test.deletes
				if err := u.Journal.Persist(w.Context()); err != nil {
					w.Fatal(err)
				}
				if _, err := u.Send(w.Context()); err != nil {
					w.Fatal(err)
				}
				for i := range u.parts {
					if test.absent {
						_ = w.srv.DeleteObject("bkt", u.partName(i))
					}
				}
				if test.refuse != "" {
					w.fault(test.refuse, 1, -1, status(403))
				}
				w.requests()
				err := u.Finish(w.Context())
				if got := w.requests(); got != test.requests {
					w.Errorf("the requests are %s, want %s", got, test.requests)
				}
				failed := test.refuse != "" && test.way.Way == Compose
				if (err != nil) != failed || w.token().Over != (test.way.Way == Compose && !test.deletes || failed) {
					w.Errorf("error %v, over %t", err, w.token().Over)
				}
			})
		})
	}
}

// TestSettledUploadIsGone checks that the upload is aborted if the object was found and not made: the completion of another
// process may have been that of other parts.
func TestSettledUploadIsGone(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		u := w.begin(byMultipart)
		w.fault(faults.OpPartsComplete, 1, 1, faults.Action{Effect: faults.EffectLoseReply})
		w.fault(faults.OpGet, 1, -1, status(503))
		if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrRetriesExhausted) {
			w.Fatal(err)
		}
		w.srv.ClearFaults()
		u = w.next(u)
		w.succeed(u)
		if got, want := w.requests(), "get parts-abort!404"; got != want {
			w.Errorf("the requests are %s, want %s", got, want)
		}
	})
}

// permit is a permit that is lost at some time.
type permit struct{ held context.Context }

func (p permit) Context() context.Context { return p.held }
func (permit) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	return ctx, func() {}, nil
}

// TestRemovalOutlivesTheCall checks that a removal ends soon after its call is canceled, and at once when the lease is lost. The
// error is then that of the lease, because the other process finishes the work.
func TestRemovalOutlivesTheCall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		latency time.Duration
		lost    bool
		took    time.Duration
	}{{"in time", time.Second, false, time.Second}, {"too late", time.Hour, false, grace.Requests}, {"lease lost", time.Hour, true, time.Second}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				u := w.begin(byMultipart)
				lease, lose := context.WithCancelCause(context.Background())
				defer lose(nil)
				u.Uplink.Permit = permit{lease}
				ctx, cancel := context.WithCancel(w.Context())
				cancel()
				w.fault(faults.OpPartsAbort, 1, 1, faults.Action{Effect: faults.EffectDelay, For: test.latency})
				if test.lost {
					time.AfterFunc(time.Second, func() { lose(errSibling) })
				}
				began := time.Now()
				err := u.Abandon(ctx)
				if took := time.Since(began); took != test.took || (err == nil) != (test.latency == time.Second) || errors.Is(err, errSibling) != test.lost {
					w.Errorf("%v after %v, want %v", err, took, test.took)
				}
			})
		})
	}
}

// TestUnsavedStartIsAborted checks that a multipart upload that cannot be saved is aborted, because no later process could find it, and
// that a warning reports one that may be left. A start whose call is canceled waits for the reply, which has the ID.
func TestUnsavedStartIsAborted(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			if refused {
				w.fault(faults.OpPartsAbort, 1, -1, status(403))
			}
			u := w.begin(byMultipart)
			u.common().Size = -1 // the store refuses it
			_, err := u.Send(w.Context())
			w.srv.ClearFaults()
			if left := map[bool]string{true: "0 parts"}[refused]; err == nil || w.stored() != left || (len(w.noted(engine.Warning)) > 0) != refused {
				w.Errorf("%v, the service has %q, warnings %q", err, w.stored(), w.noted(engine.Warning))
			}
			ctx, cancel := context.WithTimeout(w.Context(), time.Second/2)
			defer cancel()
			w.fault(faults.OpPartsStart, 1, 1, faults.Action{Effect: faults.EffectDelay, For: time.Second})
			u.Options.Connections = 2
			if plan, err := (&Planner{Division: u.Division, Multipart: true, Size: byMultipart.size}).Plan(ctx); err != nil || plan.Parts.Upload.IsZero() {
				w.Errorf("%+v, %v", plan, err)
			}
		})
	}
}
