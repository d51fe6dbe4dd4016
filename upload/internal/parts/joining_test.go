package parts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
)

// TestJoin checks the requests that make the object, after a reply that is lost, refused or wrong, and beside another client.
func TestJoin(t *testing.T) {
	t.Parallel()
	lost := faults.Action{Effect: faults.EffectLoseReply}
	for _, test := range []struct {
		name     string
		way      way
		op       faults.Op
		do       faults.Action
		written  bool // by another client after the parts were stored
		pinned   bool // the caller requires that there is no object
		err      error
		requests string
	}{
		{name: "lost", way: byMultipart, op: faults.OpPartsComplete, do: lost, requests: "get!404 parts-list parts-list parts-complete!lost get get parts-abort!404"},
		{name: "not done", way: byMultipart, op: faults.OpPartsComplete, do: status(503), requests: "get!404 parts-list parts-list parts-complete!503 get!404 parts-list parts-complete get"},
		{name: "at work", way: byMultipart, op: faults.OpPartsComplete, do: status(409), requests: "get!404 parts-list parts-list parts-complete!409 get!404 parts-list parts-complete get"},
		{name: "gone, once", way: byMultipart, op: faults.OpPartsComplete, do: noUpload, requests: "get!404 parts-list parts-list parts-complete!404 get!404 parts-list parts-complete get"},
		{name: "written", way: byMultipart, written: true, requests: "get parts-list parts-list parts-complete get"},
		{name: "not described", way: byMultipart, op: faults.OpGet, do: status(403), requests: "get!404 parts-list parts-list parts-complete get!403"},

		{name: "lost", way: byCompose, op: faults.OpCompose, do: lost, requests: "get!404 compose!lost get"},
		{name: "not done", way: byCompose, op: faults.OpCompose, do: status(503), requests: "get!404 compose!503 get!404 compose"},
		{name: "refused once", way: byCompose, op: faults.OpCompose, do: status(400), requests: "get!404 compose!400 get!404 get get get compose"},
		{name: "written", way: byCompose, written: true, requests: "get compose!412 get compose"},
		{name: "written after a lost reply", way: byCompose, op: faults.OpCompose, do: status(503), written: true, err: session.ErrOutcomeUnknown, requests: "get compose!503 get"},
		{name: "pinned", way: byCompose, pinned: true, requests: "get!404 compose"},
		{name: "pinned, lost", way: byCompose, pinned: true, op: faults.OpCompose, do: lost, requests: "get!404 compose!lost get"},
		{name: "pinned, written", way: byCompose, pinned: true, written: true, err: session.ErrPrecondition, requests: "get compose!412 get"},
	} {
		t.Run(test.way.name+" "+test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				if test.pinned {
					w.spec.IfGenerationMatch = new(int64)
				}
				u := w.begin(test.way)
				w.refuseJoin(u)
				if test.written {
					w.write("obj", "of another client")
				}
				u.Journal.Keep()
				w.requests()
				if test.op == faults.OpGet {
					w.fault(test.op, 2, 1, test.do)
				} else if test.op != "" {
					w.fault(test.op, 1, 1, test.do)
				}
				if test.err == nil {
					w.succeed(u)
				} else if _, err := u.Send(w.Context()); !errors.Is(err, test.err) {
					w.Errorf("error %v, want %v", err, test.err)
				} else if got := w.stored(); !strings.Contains(got, " obj") && !strings.HasPrefix(got, "0000") {
					w.Errorf("the service has %s", got)
				}
				if got := strings.TrimSuffix(w.requests(), " delete delete delete"); got != test.requests {
					w.Errorf("the requests are\n%s, want\n%s", got, test.requests)
				}
				if p := u.common(); p.Joining != (test.err == session.ErrOutcomeUnknown) && !test.pinned && test.err != nil {
					w.Errorf("joining %t after %v", p.Joining, test.err)
				}
			})
		})
	}
}

// TestNextProcessAfterALostJoin checks what the next process does if the process was killed after it had requested the object: it
// finds the object, makes it, or reports that the outcome is not known because another client may have replaced the object. A
// request with a precondition of the caller cannot replace another object, so that its outcome is known.
func TestNextProcessAfterALostJoin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		way     way
		made    bool // the request had an effect
		written bool // another client wrote the object afterward
		pinned  bool
		err     error
	}{
		{name: "made", way: byMultipart, made: true},
		{name: "not made", way: byMultipart},
		{name: "made and replaced", way: byMultipart, made: true, written: true, err: session.ErrOutcomeUnknown},
		{name: "not made, written", way: byMultipart, written: true, err: session.ErrOutcomeUnknown},
		{name: "made", way: byCompose, made: true},
		{name: "not made", way: byCompose},
		{name: "made and replaced", way: byCompose, made: true, written: true, err: session.ErrOutcomeUnknown},
		{name: "not made, written", way: byCompose, written: true, err: session.ErrOutcomeUnknown},
		{name: "pinned, made", way: byCompose, made: true, pinned: true},
		{name: "pinned, not made", way: byCompose, pinned: true},
		{name: "pinned, written", way: byCompose, written: true, pinned: true, err: session.ErrPrecondition},
	} {
		t.Run(test.way.name+" "+test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				if test.pinned {
					w.spec.IfGenerationMatch = new(int64)
				}
				u := w.begin(test.way)
				do := status(503)
				if test.made {
					do = faults.Action{Effect: faults.EffectLoseReply}
					w.fault(faults.OpGet, 1, -1, status(503))
				}
				w.fault(faults.OpPartsComplete, 1, -1, do)
				w.fault(faults.OpCompose, 1, -1, do)
				if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrRetriesExhausted) {
					w.Fatal(err)
				}
				w.srv.ClearFaults()
				if test.written {
					w.write("obj", "of another client")
				}
				u = w.next(u)
				if w.token().Joining == test.pinned {
					w.Errorf("joining %t", !test.pinned)
				}
				o, err := u.Settle(w.Context())
				if settled := test.err == nil || test.pinned; (err == nil) != settled || !errors.Is(err, test.err) && !settled || (o != nil) != (test.made && !test.written) {
					w.Errorf("Settle = %v, %v", o, err)
				}
				if test.err == nil {
					w.succeed(u)
				} else if _, err = u.Send(w.Context()); !errors.Is(err, test.err) {
					w.Errorf("error %v, want %v", err, test.err)
				} else if got, _ := w.srv.ReadObject("bkt", "obj"); string(got) != "of another client" {
					w.Errorf("the object of the other client is replaced by %d bytes", len(got))
				}
				if n := u.Uplink.Tally.Sent.Load(); n != 0 {
					w.Errorf("%d bytes are sent again", n)
				}
			})
		})
	}
}

// TestObjectOfTheParts checks which objects at the destination count as made from the parts: those with their bytes that are newer than
// the object before, and were made in the same way.
func TestObjectOfTheParts(t *testing.T) {
	t.Parallel()
	for _, by := range []way{byMultipart, byCompose} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(by)
			w.refuseJoin(u)
			u.Journal.Parts().Seen = 5
			components := map[Way]int64{Compose: 3}[by.Way]
			object := func(change func(*session.Object)) *session.Object {
				o := &session.Object{Generation: 6, Size: by.size, HasCRC32C: true, CRC32C: u.crc32c(), ComponentCount: components}
				change(o)
				return o
			}
			for name, test := range map[string]struct {
				change func(*session.Object)
				want   bool
			}{
				"the object":    {func(*session.Object) {}, true},
				"older":         {func(o *session.Object) { o.Generation = 5 }, false},
				"longer":        {func(o *session.Object) { o.Size++ }, false},
				"other bytes":   {func(o *session.Object) { o.CRC32C++ }, false},
				"no CRC32C":     {func(o *session.Object) { o.HasCRC32C = false }, false},
				"MD5":           {func(o *session.Object) { o.MD5 = make([]byte, 16) }, by.Way == Compose},
				"another count": {func(o *session.Object) { o.ComponentCount = 2 }, by.Way == Multipart},
			} {
				if got := u.made(object(test.change)); got != test.want {
					w.Errorf("%s, %s: %t, want %t", by.name, name, got, test.want)
				}
			}
			u.Wire.Spec.IfGenerationMatch = new(int64(6))
			if u.made(object(func(*session.Object) {})) {
				w.Error("the object that the caller named counts as made")
			}
		})
	}
}

// TestComposeInGroups checks that more than 32 temporary objects are composed in groups, which are removed like the parts, and are
// found again after a lost reply.
func TestComposeInGroups(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]faults.Action{"": {}, "lost": {Effect: faults.EffectLoseReply}, "not done": status(503)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				w.content, w.options.Connections = random(66*q), 64
				u := w.begin(byCompose)
				if name != "" {
					w.fault(faults.OpCompose, 1, 1, do)
				}
				w.succeed(u)
				if o, _ := w.srv.Object("bkt", "obj"); o.ComponentCount != 33 {
					w.Errorf("composed from %d parts", o.ComponentCount)
				}
			})
		})
	}
	t.Run("written", func(t *testing.T) {
		t.Parallel()
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			w.content, w.options.Connections = random(66*q), 64
			u := w.begin(byCompose)
			w.write(u.common().Prefix+"c1-0001", "of another client")
			if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrUnexpectedData) {
				w.Error(err)
			}
			err := u.Abandon(w.Context())
			if want := fmt.Sprintf("1 temporary objects or sessions are not removed: gs://bkt/%s*: another client may have written it", u.common().Prefix); err == nil || err.Error() != want {
				w.Errorf("error %v, want %s", err, want)
			}
			if got := w.stored(); got != "c1-0001" {
				w.Errorf("the service has %s", got)
			}
		})
	})
}
