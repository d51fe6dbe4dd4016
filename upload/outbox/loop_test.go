package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/require"
)

// TestTimeBetweenScans checks that the time between two scans begins when the first one has ended. A scan that takes
// longer than that time would otherwise be followed by another one at once, and no ordered file would be uploaded.
func TestTimeBetweenScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Outbox{opened: time.Now(), opts: Options{Rescan: time.Minute}}
		require.NoError(t, o.setDefaults())
		l := &loop{Outbox: o, ctx: t.Context(), scanner: newScanner(t.TempDir(), func(string) {}), next: never, scanning: true}
		asked := func() bool {
			l.rescan()
			was := l.scanner.full
			l.scanner.full = false
			return was
		}
		l.scanner.full = false // it scans
		time.Sleep(time.Hour)
		if asked() {
			t.Error("a scan is asked for during another one")
		}
		require.NoError(t, l.found([]sighting{{kind: scanBegan}, {kind: scanEnded}}))
		time.Sleep(time.Minute - 1)
		if asked() {
			t.Error("a scan is asked for too early")
		}
		time.Sleep(time.Nanosecond)
		if !asked() || asked() {
			t.Error("no scan is asked for, or two are")
		}
	})
}
