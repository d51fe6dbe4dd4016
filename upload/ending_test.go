package upload

import "testing"

// TestEnding tries all combinations of facts, and checks what must hold for each decision.
func TestEnding(t *testing.T) {
	t.Parallel()
	const flags = 11
	for of := ofStream; of <= ofSpool; of++ {
		for _, dead := range []fact{unknown, no, yes} {
			for bits := range 1 << flags {
				is := func(bit int) bool { return bits>>bit&1 > 0 }
				e := end{
					of: of, dead: dead, made: is(0), savable: is(1), saved: is(2), lost: is(3), canceled: is(4), refused: is(5),
					final: is(6), unexpected: is(7), unended: is(8), released: is(9), outdated: is(10),
				}
				switch {
				case e.lost && (e.saved || !e.savable), e.saved && !e.savable: // the lease is lost, or there is none
				case e.made && (e.dead != no || e.canceled || e.refused || e.unexpected): // no error
				case dead == unknown && of != ofSpool, of == ofStream && e.savable:
				default:
					checkFate(t, e, ending(e))
				}
			}
		}
	}
}

func checkFate(t *testing.T, e end, is fate) {
	t.Helper()
	gives := is == discard || is == discardAndCancel || is == remove
	hopeless := e.dead == yes || e.refused && e.final || e.unexpected || e.of == ofSpool && (e.unended || !e.saved)
	for what, wrong := range map[string]bool{
		"committed bytes are given up without a reason": gives && !e.made && !hopeless && (e.of != ofParts || e.savable),
		"a saved upload is forgotten":                   (is == leave || is == cancelSession) && e.saved,
		"what another process has is changed":           e.lost && is != leave && is != removeOrphaned && e.of != ofStream && !(e.of == ofParts && e.made),
		"Cancel would not find the saved upload":        e.canceled && e.saved && (gives || is == renew) && e.of != ofStream,
		"the session of an object is canceled":          e.made && (is == cancelSession || is == discardAndCancel || is == renew),
		"an object is made, and its upload stays saved": e.made && e.saved && !gives && e.of != ofStream,
		"a stream that failed keeps its session":        e.of == ofStream && !e.made && is != cancelSession,
		"bytes that are only in the session are lost":   is == renew && e.released,
		"nothing is known, and nothing is asked":        e.dead == unknown && e.of == ofSpool && is == renew,
		"a question that has no answer":                 is == ask && (e.dead != unknown || e.of != ofSpool),
		"old offsets replace saved ones":                is == keep && e.outdated && e.of == ofFile,
	} {
		if wrong {
			t.Fatalf("%s: %+v: fate %d", what, e, is)
		}
	}
}
