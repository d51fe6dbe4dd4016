package engine_test

import (
	"strings"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestInquire checks what a session holds, as the service answers, and that an answer which would end a session is confirmed.
func TestInquire(t *testing.T) {
	t.Parallel()
	const query = faults.OpQuery
	for _, tt := range []struct {
		name      string
		held      int64
		temporary bool
		faults    []faults.Fault
		want      engine.Held
		err       error
		log       string
	}{
		{name: "open", held: 2 * q, want: engine.Held{State: engine.HeldOpen, Committed: 2 * q}, log: "query 308 2q done"},
		{name: "open, nothing committed", want: engine.Held{State: engine.HeldOpen}, log: "query 308 done"},
		{name: "gone", faults: always(query, effect(faults.EffectNotFound)), want: engine.Held{State: engine.HeldGone}, log: "query 404 query; wait 1s; query 404 done"},
		{name: "canceled", faults: on(query, effect(faults.EffectCanceled)), want: engine.Held{State: engine.HeldCanceled}, log: "query 499 done"},
		{name: "canceled, and temporary", temporary: true, faults: on(query, effect(faults.EffectCanceled)), want: engine.Held{State: engine.HeldGone}, log: "query 499 query; wait 1s; query 499 done"},
		{name: "refused", faults: on(query, status(403)), err: session.ErrPermission, log: "query 403 fail"},
		{name: "no answer at first", held: q, faults: on(query, effect(faults.EffectStall)), want: engine.Held{State: engine.HeldOpen, Committed: q}, log: "query lost query; wait 1s; query 308 q done"},
	} {
		inBubble(t, fakegcs.Options{Faults: tt.faults}, func(w *world) {
			uri, began := w.session(data(tt.held)), time.Now()
			held, err := engine.Inquire(w.t.Context(), w.requester(spec), uri, tt.temporary)
			w.want(err, tt.err, tt.log)
			if held != tt.want || time.Since(began) > 31*time.Second {
				t.Errorf("%s: %+v after %v, want %+v", tt.name, held, time.Since(began), tt.want)
			}
		})
	}
	inBubble(t, fakegcs.Options{}, func(w *world) {
		c := w.uplink.Client
		uri := c.Start(w.t.Context(), spec, 5).URI
		c.Finalize(w.t.Context(), uri, chunk.Range{To: 5}, 5, checksum.Update(0, data(5)), strings.NewReader(string(data(5))))
		if held, err := engine.Inquire(w.t.Context(), w.requester(spec), uri, false); err != nil || held.State != engine.HeldFinished || held.Object.Size != 5 {
			t.Errorf("%+v, %v", held, err)
		}
	})
}
