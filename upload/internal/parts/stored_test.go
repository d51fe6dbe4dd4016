package parts

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
)

// noUpload is the service's reply that there is no such multipart upload.
var noUpload = faults.Action{Effect: faults.EffectStatus, Status: 404, Reason: "noUpload"}

// refuseJoin makes Send fail after it has sent all parts.
func (w *world) refuseJoin(u *Upload) {
	w.Helper()
	w.fault(faults.OpPartsList, 1, 1, status(403))
	w.fault(faults.OpCompose, 1, 1, status(403))
	if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrPermission) || u.Journal.Finished() != 3 {
		w.Fatalf("%v, %d parts", err, u.Journal.Finished())
	}
	w.srv.ClearFaults()
}

// kill ends the process of u. The store has what it had at an earlier time. It returns the upload in the next process.
func (w *world) kill(u *Upload, before *state.Parts) *Upload {
	w.Helper()
	doc, err := w.store.Load(w.Context(), id)
	if err == nil {
		u.Journal.Close()
		doc.Parts = before
		err = w.store.Save(w.Context(), doc)
	}
	if err != nil {
		w.Fatal(err)
	}
	return w.next(nil)
}

// putPart sends a part of the multipart upload as another client.
func (w *world) putPart(u *Upload, number int, content []byte) {
	w.Helper()
	if _, r := multipart.PutPart(w.Context(), w.client, w.spec, u.common().Upload, number, int64(len(content)), checksum.Update(0, content), bytes.NewReader(content)); r.Status != 200 {
		w.Fatalf("%+v", r)
	}
}

// wantCommitted checks what the service has of an upload, as a call that changes nothing finds out.
func (w *world) wantCommitted(u *Upload, want engine.Held) {
	w.Helper()
	if got, err := u.Committed(w.Context()); err != nil || got != want {
		w.Errorf("the service has %+v, %v; want %+v", got, err, want)
	}
}

// TestListShowsStoredParts checks that parts of a multipart upload, of which the saved upload does not know that they are
// stored, are found in the list of the service by their size and MD5. Others are sent again. Committed and Send agree.
func TestListShowsStoredParts(t *testing.T) {
	t.Parallel()
	const all = 2*multipart.MinPart + q
	for _, test := range []struct {
		name    string
		noMD5   bool
		memory  int64
		foreign []byte // bytes of part 3, of another client
		known   bool   // the saved upload has the ETags of the parts
		found   int64
	}{
		{name: "found", memory: 64 * mib, found: all},
		{name: "found, read again", memory: mib, found: all},
		{name: "no MD5", noMD5: true, memory: 64 * mib},
		{name: "other bytes", memory: 64 * mib, foreign: random(q + 1)[1:], found: all - q},
		{name: "another size", memory: 64 * mib, foreign: random(7), found: all - q},
		{name: "known", noMD5: true, memory: 64 * mib, known: true, found: all},
		{name: "known, other bytes", memory: 64 * mib, foreign: random(q + 1)[1:], known: true, found: all - q},
		{name: "known, another size", memory: 64 * mib, foreign: random(7), known: true, found: all - q},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: test.noMD5}, func(w *world) {
				w.memory = test.memory
				u := w.begin(byMultipart)
				if err := u.Journal.Persist(w.Context()); err != nil {
					w.Fatal(err)
				}
				before := w.token()
				w.refuseJoin(u)
				if test.foreign != nil {
					w.putPart(u, 3, test.foreign)
				}
				if test.known {
					u = w.next(u)
				} else {
					u = w.kill(u, before)
				}
				w.wantCommitted(u, engine.Held{State: engine.HeldOpen, Committed: test.found})
				if blind := u.Division; !test.known {
					blind.File = nil // without the source, no bytes can be compared
					w.wantCommitted(NewUpload(blind, false), engine.Held{State: engine.HeldOpen})
				}
				w.succeed(u)
				if resumed, _, _ := u.Sums(); resumed != test.found || u.Uplink.Tally.Sent.Load() != all-test.found {
					w.Errorf("resumed from %d, sent %d, want %d and %d", resumed, u.Uplink.Tally.Sent.Load(), test.found, all-test.found)
				}
			})
		})
	}
}

// TestOneListIsNotBelieved checks that a list that contradicts what was sent is asked for again, before a part is sent again:
// by a resume, and before the completion.
func TestOneListIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]string{
		"no parts": "", "truncated": "<IsTruncated>true</IsTruncated>",
		"another ETag":   `<Part><PartNumber>1</PartNumber><ETag>"x"</ETag><Size>5242880</Size></Part>`,
		"another number": `<Part><PartNumber>9</PartNumber><ETag>"x"</ETag><Size>5</Size></Part>`,
	} {
		for _, from := range []int{1, 2} {
			t.Run(fmt.Sprint(name, from), func(t *testing.T) {
				t.Parallel()
				inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
					u := w.interrupt(w.begin(byMultipart))
					w.fault(faults.OpPartsList, from, 1, faults.Action{
						Effect: faults.EffectStatus, Status: 200, ContentType: "application/xml", Body: "<ListPartsResult>" + parts + "</ListPartsResult>",
					})
					w.succeed(u)
					lists := strings.Count(w.requests(), "parts-list")
					if resumed, _, _ := u.Sums(); resumed != multipart.MinPart || u.Uplink.Tally.Sent.Load() != multipart.MinPart+q || lists < 3 {
						w.Errorf("resumed from %d, sent %d, %d lists", resumed, u.Uplink.Tally.Sent.Load(), lists)
					}
				})
			})
		}
	}
}

// TestRefusedDataGetsAnotherSession checks that a part whose data the service refuses in two processes at the same offset is sent in
// another session.
func TestRefusedDataGetsAnotherSession(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		u := w.begin(byCompose)
		w.fault(faults.OpPut, 2, 2, status(400))
		if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrProtocol) || u.Journal.Finished() != 1 {
			w.Errorf("%v, %d parts", err, u.Journal.Finished())
		}
		u = w.next(u)
		w.succeed(u)
		if got, want := w.requests(), "query put!400 query start put finalize start finalize compose delete delete delete"; got != want {
			w.Errorf("the requests of the next process are\n%s, want\n%s", got, want)
		}
	})
}

// TestListHasPages checks that the list of the parts is read to its end.
func TestListHasPages(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		u := w.begin(byMultipart)
		w.refuseJoin(u)
		w.fault(faults.OpPartsList, 1, 1, faults.Action{Effect: faults.EffectStatus, Status: 200, ContentType: "application/xml", Body: fmt.Sprintf(
			"<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>1</NextPartNumberMarker><Part><PartNumber>1</PartNumber><ETag>%s</ETag><Size>%d</Size></Part></ListPartsResult>",
			u.common().List[0].ETag, u.common().Size)})
		w.requests()
		w.wantCommitted(u, engine.Held{State: engine.HeldOpen, Committed: byMultipart.size})
		if got := w.requests(); got != "parts-list parts-list" {
			w.Errorf("the requests are %s", got)
		}
		w.fault(faults.OpPartsList, 1, -1, status(403))
		if held, err := u.Committed(w.Context()); !errors.Is(err, session.ErrPermission) || held != (engine.Held{}) {
			w.Errorf("%+v, %v without an answer", held, err)
		}
	})
}

// TestUnknownPartEndsTheUpload checks that an upload does not complete with a part that it did not send.
func TestUnknownPartEndsTheUpload(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		u := w.begin(byMultipart)
		w.refuseJoin(u)
		w.putPart(u, 9, random(7))
		if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrUnexpectedData) || !strings.Contains(err.Error(), "1 parts that were not sent") {
			w.Error(err)
		}
	})
}

// TestReplyWithoutItsEffect checks that a part whose reply is lost or says nothing is looked for before it is sent again,
// and that a part that arrived damaged is sent again with its checksum.
func TestReplyWithoutItsEffect(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		way      way
		memory   int64
		op       faults.Op
		do       faults.Action
		resent   bool
		hashed   int // requests whose header has the checksum of the part
		requests string
	}{
		{"lost", byMultipart, 64 * mib, faults.OpPartsPut, faults.Action{Effect: faults.EffectLoseReply}, false, 3, "parts-put parts-put!lost parts-list parts-put parts-list parts-complete get"},
		{"lost, no effect", byMultipart, 64 * mib, faults.OpPartsPut, faults.Action{Effect: faults.EffectClose}, true, 4, "parts-put parts-put!lost parts-list parts-put parts-put parts-list parts-complete get"},
		{"damaged", byMultipart, 64 * mib, faults.OpPartsPut, faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}, true, 4, "parts-put parts-put!400 parts-put parts-put parts-list parts-complete get"},
		{"damaged, not in memory", byMultipart, 1, faults.OpPartsPut, faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}, true, 2, "parts-put parts-put parts-list parts-put parts-put parts-list parts-complete get"},
		{"gone, once", byMultipart, 64 * mib, faults.OpPartsPut, noUpload, true, 4, "parts-put parts-put!404 parts-list parts-put parts-put parts-list parts-complete get"},
		{"another checksum in the reply", byMultipart, 1, faults.OpPartsPut, faults.Action{Effect: faults.EffectWrongHash}, false, 1, "parts-put parts-put parts-list parts-put parts-list parts-complete get"},
		{"lost", byCompose, 64 * mib, faults.OpFinalize, faults.Action{Effect: faults.EffectLoseReply}, false, 0, "start put finalize start put finalize!lost query start finalize compose delete delete delete"},
		{"damaged", byCompose, 64 * mib, faults.OpPut, faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}, true, 0, "start put finalize start put start put finalize start finalize compose delete delete delete"},
	} {
		t.Run(test.way.name+" "+test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{}, func(w *world) {
				w.memory = test.memory
				u, hashed := w.begin(test.way), 0
				w.before = func(req *http.Request) {
					if req.URL.Query().Has("partNumber") && req.Header.Get("X-Goog-Hash") != "" {
						hashed++
					}
				}
				w.fault(test.op, 2, 1, test.do)
				w.succeed(u)
				if got := w.requests(); got != test.requests || hashed != test.hashed || (u.Uplink.Tally.Resent.Load() > 0) != test.resent {
					w.Errorf("%d bytes are sent again, %d requests have a checksum; the requests are\n%s, want\n%s", u.Uplink.Tally.Resent.Load(), hashed, got, test.requests)
				}
			})
		})
	}
}

// TestSessionsShowStoredParts checks that an upload by compose asks the sessions of its parts what the service has: all of a part
// whose last reply was lost, or what an open session has committed.
func TestSessionsShowStoredParts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		do     faults.Action
		stored int64
	}{{faults.Action{Effect: faults.EffectLoseReply}, 4 * q}, {status(503), 3 * q}} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(byCompose)
			w.wantCommitted(u, engine.Held{State: engine.HeldGone})
			w.fault(faults.OpFinalize, 2, -1, test.do)
			w.fault(faults.OpQuery, 1, -1, status(503))
			if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrRetriesExhausted) {
				w.Fatal(err)
			}
			if held, err := u.Committed(w.Context()); !errors.Is(err, session.ErrRetriesExhausted) || held != (engine.Held{}) {
				w.Errorf("%+v, %v without an answer", held, err)
			}
			w.srv.ClearFaults()
			u = w.next(u)
			w.wantCommitted(u, engine.Held{State: engine.HeldOpen, Committed: test.stored})
			w.succeed(u)
			if resumed, _, _ := u.Sums(); resumed != test.stored || u.Uplink.Tally.Sent.Load() != 5*q-test.stored {
				w.Errorf("resumed from %d, sent %d", resumed, u.Uplink.Tally.Sent.Load())
			}
		})
	}
}

// TestLostPartsAreSentAgain checks that parts that the service no longer has are sent again after two answers agree, and that
// an object that another client wrote in the place of one is not used.
func TestLostPartsAreSentAgain(t *testing.T) {
	t.Parallel()
	t.Run("multipart", func(t *testing.T) {
		t.Parallel()
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(byMultipart)
			w.refuseJoin(u)
			u = w.next(u)
			multipart.Abort(w.Context(), w.client, w.spec, u.common().Upload)
			w.wantCommitted(u, engine.Held{State: engine.HeldGone})
			w.requests()
			w.succeed(u)
			want := "get!404 parts-list!404 parts-list!404 get!404 parts-start parts-put parts-put parts-put parts-list parts-complete get"
			if got := w.requests(); got != want || len(w.noted(engine.Restarted)) != 1 {
				w.Errorf("%d restarts; the requests are\n%s, want\n%s", len(w.noted(engine.Restarted)), got, want)
			}
			if resumed, _, _ := u.Sums(); resumed != 0 {
				w.Errorf("resumed from %d", resumed)
			}
		})
	})
	t.Run("compose", func(t *testing.T) {
		t.Parallel()
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(byCompose)
			w.refuseJoin(u)
			if err := w.srv.DeleteObject("bkt", u.partName(1)); err != nil {
				w.Fatal(err)
			}
			w.requests()
			w.succeed(u)
			want := "get!404 compose!404 get!404 get get!404 get!404 get start put finalize compose delete delete delete"
			if got := w.requests(); got != want {
				w.Errorf("the requests are\n%s, want\n%s", got, want)
			}
		})
	})
	t.Run("compose, another client", func(t *testing.T) {
		t.Parallel()
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(byCompose)
			w.refuseJoin(u)
			w.write(u.partName(1), "of another client")
			if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrUnexpectedData) || !strings.Contains(err.Error(), u.partName(1)) {
				w.Error(err)
			}
			if u.Journal.Finished() != 3 {
				w.Errorf("%d parts are finished", u.Journal.Finished())
			}
		})
	})
	t.Run("compose, another client was first", func(t *testing.T) {
		t.Parallel()
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(byCompose)
			w.write(u.partName(1), "of another client")
			if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrUnexpectedData) {
				w.Error(err)
			}
			w.succeed(w.next(u)) // in another session, because the object is deleted
		})
	})
	t.Run("compose, damaged", func(t *testing.T) {
		t.Parallel()
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(byCompose)
			w.before = func(req *http.Request) { req.Header.Del("X-Goog-Hash") } // so that the service does not notice
			w.fault(faults.OpFinalize, 3, 1, faults.Action{Effect: faults.EffectCorrupt, Bytes: 1})
			if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrUnexpectedData) || !strings.Contains(err.Error(), "has crc32c ") {
				w.Error(err)
			}
			w.succeed(w.next(u))
		})
	})
	for _, by := range []way{byMultipart, byCompose} {
		t.Run(by.name+", always", func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				w.tries = 20
				u := w.begin(by)
				w.refuseJoin(u)
				for _, op := range []faults.Op{faults.OpPartsPut, faults.OpPartsList} {
					w.fault(op, 1, -1, noUpload)
				}
				w.before = func(*http.Request) {
					for _, p := range u.parts {
						_ = w.srv.DeleteObject("bkt", u.partName(p.i))
					}
				}
				w.requests()
				_, err := u.Send(w.Context())
				kind := map[Way]error{Multipart: session.ErrSessionLost, Compose: session.ErrUnexpectedData}[by.Way]
				got := w.requests()
				if n := strings.Count(got, "parts-start") + strings.Count(got, " compose"); !errors.Is(err, kind) || n != 3 {
					t.Errorf("%v after %s", err, got)
				}
			})
		})
	}
}
