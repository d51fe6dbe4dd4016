package upload_test

import (
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestPeerThatClosesIdleConnections checks that an upload succeeds with a peer that
// silently closes each connection a few milliseconds after its reply. In earlier
// versions, every request after a query used the connection of that query, which was
// being closed, and so did every part after the list of parts.
func TestPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for _, after := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		for name, with := range map[string]func(*upload.Options){"session": func(*upload.Options) {}, "multipart": byMultipart} {
			inBubble(t, &fakegcs.Options{Rate: 20 * mib, Latency: 3 * time.Millisecond}, func(w *world) {
				w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
				if _, err := w.uploader(with).File(w.t.Context(), w.file(content), spec); err != nil {
					t.Fatalf("%s, %v: %v\n%s", name, after, err, w.trace())
				}
				w.wantOnlyObject(content)
				for _, e := range w.events {
					if e.Kind == upload.Waiting && (e.Part > 0 || name == "session") {
						t.Errorf("%s, %v: part %d waited: %s\n%s", name, after, e.Part, e.Cause, w.trace())
					}
				}
			})
		}
	}
}
