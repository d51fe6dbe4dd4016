package upload

import (
	"slices"
	"testing"
)

// allFacts calls f with every combination.
func allFacts(f func(facts)) {
	threeFacts := []fact{unknown, no, yes}
	for saved := nothingSaved; saved <= savedRemoval; saved++ {
		for parts := undecided; parts <= inParts; parts++ {
			for tried := noSession; tried <= wrongBytes; tried++ {
				for _, changed := range threeFacts {
					for _, made := range threeFacts {
						for _, unmet := range threeFacts {
							for _, small := range threeFacts {
								for bits := range 16 {
									f(facts{
										saved: saved, parts: parts, tried: tried, changed: changed, made: made, unmet: unmet, small: small,
										restart: bits&1 > 0, differs: bits&2 > 0, unusable: bits&4 > 0, replace: bits&8 > 0,
									})
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestNextStep tries all combinations of facts, and checks what must hold for each decision.
func TestNextStep(t *testing.T) {
	t.Parallel()
	n := 0
	allFacts(func(f facts) {
		n++
		p := nextStep(f)
		untried, saved := f.tried == noSession, f.saved != nothingSaved
		usable := untried && saved && !f.restart && !f.differs && !f.unusable
		sound := map[step]bool{
			lookAgain:       untried && !saved && f.made == unknown,
			findObject:      usable && f.saved == savedRemoval && f.made == unknown,
			compareSource:   usable && f.changed == unknown,
			prepare:         untried && !saved && f.made == no && f.unmet == unknown && f.parts != inParts,
			divide:          f.parts == undecided && (f.tried == slowSession || untried && !saved && f.made == no && f.unmet == no && f.small != yes),
			startOver:       p.why != noReason && (saved || !untried),
			resumeSession:   usable && f.saved == savedSession && f.changed == no,
			resumeParts:     usable && f.saved >= savedParts && f.changed == no && (f.saved == savedParts || f.made == yes),
			insert:          untried && !saved && f.made == no && f.unmet == no && f.small == yes,
			sendParts:       untried && !saved && f.made == no && f.parts == inParts,
			newSession:      untried && !saved && f.made == no && (f.unmet == yes || f.unmet == no && f.small != yes && f.parts == undivided),
			measureSession:  untried && !saved && f.made == no && f.unmet == no && f.small != yes && f.parts == unmeasured,
			continueSession: f.tried == slowSession && (f.parts == undivided || f.parts == unmeasured),
			refuseOptions:   untried && saved && f.differs && !f.restart,
			refuseSource:    usable && f.changed == yes && !f.replace && f.saved != savedRemoval,
			finish:          f.tried == sessionEnded || f.tried == wrongSource && !f.replace,
			stop:            untried && !saved && f.made == yes,
		}[p.step]
		if !sound || p.step != startOver && p.why != noReason {
			t.Fatalf("%+v: %+v", f, p)
		}
		// What is committed is discarded only for a reason that the facts have.
		if p.step == startOver && !map[reason]bool{
			asRequested:     untried && f.restart,
			otherEndpoint:   untried && f.unusable && !f.differs,
			sourceChanged:   usable && f.changed == yes && (f.replace || f.saved == savedRemoval),
			onlyRemoval:     usable && f.saved == savedRemoval && f.made == no,
			slowLink:        f.tried == slowSession && f.parts == inParts,
			otherChecksum:   f.tried == wrongSource && f.replace,
			otherCompressor: f.tried == wrongBytes,
		}[p.why] {
			t.Fatalf("%+v: starts over for the reason %d", f, p.why)
		}
	})
	if n != 4*4*5*81*16 {
		t.Errorf("%d combinations", n)
	}
}

// after returns what an upload may know after a step. It is empty if the step ends the upload.
func after(f facts, p plan) (next []facts) {
	with := func(change func(*facts)) {
		g := f
		change(&g)
		next = append(next, g)
	}
	session := func() {
		for _, outcome := range []tried{sessionEnded, wrongSource, wrongBytes} {
			with(func(g *facts) { g.tried = outcome })
		}
	}
	switch p.step {
	case lookAgain, findObject:
		for _, made := range []fact{no, yes} {
			with(func(g *facts) { g.made = made })
		}
	case compareSource:
		for _, changed := range []fact{no, yes} {
			with(func(g *facts) { g.changed = changed })
		}
	case prepare:
		with(func(g *facts) { g.unmet = yes })
		for _, small := range []fact{no, yes} {
			with(func(g *facts) { g.unmet, g.small = no, small })
		}
	case divide:
		all := []divided{undivided, inParts, unmeasured}
		if f.tried == slowSession {
			all = all[:2] // the rate is known
		}
		for _, parts := range all {
			with(func(g *facts) { g.parts = parts })
		}
	case startOver:
		next = append(next, f.startedOver(p.why))
	case resumeSession, newSession, continueSession:
		session()
	case measureSession:
		session()
		with(func(g *facts) { g.tried, g.parts = slowSession, undecided })
	}
	return next
}

// TestNextStepEnds follows every upload from its beginning through all outcomes of its steps, and checks that it ends,
// and that it takes no step twice unless it started over or a session was tried meanwhile.
func TestNextStepEnds(t *testing.T) {
	t.Parallel()
	type taking struct {
		step  step
		tried tried
	}
	var follow func(f facts, before []taking, fresh int)
	follow = func(f facts, before []taking, fresh int) {
		p := nextStep(f)
		now := taking{p.step, f.tried}
		if p.step == startOver {
			// A session can only be compressed to other bytes, or differ from the service's checksum, if it was saved by
			// another process. The engine reports neither for a session of its own.
			if fresh++; fresh > 3 {
				return
			}
			before = nil
		} else if slices.Contains(before, now) {
			t.Fatalf("%+v: %v after %v", f, now, before)
		}
		for _, next := range after(f, p) {
			follow(next, append(slices.Clip(before), now), fresh)
		}
	}
	begins := 0
	allFacts(func(f facts) {
		begin := f.parts == undecided && f.tried == noSession && f.changed == unknown && f.unmet == unknown && f.small == unknown && f.made != yes
		if begin {
			begins++
			follow(f, nil, 0)
		}
	})
	if begins != 4*2*16 {
		t.Errorf("%d beginnings", begins)
	}
}
