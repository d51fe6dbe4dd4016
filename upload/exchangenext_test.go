package upload_test

import (
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// A hook may keep an exchange. What follows later does not change its decision.
func TestExchangeNextIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: 1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}})
		var kept []upload.Exchange
		up := w.uploader(func(o *upload.Options) {
			o.ChunkSize = 4 * q
			o.Exchange = func(x upload.Exchange) { kept = append(kept, x) }
		})
		if _, err := up.File(w.t.Context(), w.file(data(40*q)), spec); err != nil {
			t.Fatal(err)
		}
		var next []string
		for _, x := range kept {
			text := "nil"
			if x.Next != nil {
				text = x.Next.String()
			}
			next = append(next, string(x.Op)+" -> "+text)
		}
		want := []string{"start -> send", "put -> wait, query: 503 Service Unavailable: Service Unavailable", "query -> send", "put -> send"}
		if len(next) < len(want) || !slices.Equal(next[:len(want)], want) {
			t.Errorf("decisions:\n%s", strings.Join(next, "\n"))
		}
	})
}
