package parts

import (
	"slices"
	"testing"

	"gcsup/upload/internal/connections"
)

// allFacts calls f with every combination that an upload may know.
func allFacts(f func(facts)) {
	for _, divisible := range []bool{false, true} {
		for need := connections.Unmeasured; need <= connections.Several; need++ {
			for destination := unread; destination <= unreadable; destination++ {
				for free := none; free <= ready; free++ {
					for multi := none; multi <= ready; multi++ {
						for compose := none; compose <= ready; compose++ {
							f(facts{
								divisible: divisible, need: need, suffices: "one", destination: destination,
								free: free, multipart: multi, compose: compose, refused: Reasons{"refused"},
							})
						}
					}
				}
			}
		}
	}
}

// TestChoosePlan tries all combinations of facts.
func TestChoosePlan(t *testing.T) {
	t.Parallel()
	n := 0
	allFacts(func(f facts) {
		n++
		p := choosePlan(f)
		ways := f.multipart != none || f.compose != none
		useful := f.divisible && ways && f.need == connections.Several
		may := useful && f.destination == readIt
		sound := map[step]bool{
			readDestination: useful && f.destination == unread,
			tryFree:         may && f.free == untried,
			tryMultipart:    may && f.free == none && f.multipart == untried,
			tryCompose:      may && f.free == none && f.multipart == none && f.compose == untried,
			planned:         true,
		}[p.next]
		if p.next == planned {
			sound = map[Way]bool{
				OneConnection: !may || f.free == none && f.multipart == none && f.compose == none,
				Measured:      f.divisible && ways && f.need == connections.Unmeasured,
				Multipart:     may && f.free == none && f.multipart == ready,
				Compose:       may && (f.free == ready || f.free == none && f.multipart == none && f.compose == ready),
			}[p.Way]
		}
		inParts := p.next == planned && (p.Way == Multipart || p.Way == Compose)
		explained := f.divisible && p.next == planned && (p.Way == OneConnection || p.Way == Multipart)
		if !sound || inParts != (p.Parts != nil) || explained != (len(p.Why) > 0) {
			t.Fatalf("%+v: %+v", f, p)
		}
	})
	if n != 2*3*3*27 {
		t.Errorf("%d combinations", n)
	}
}

// TestChoosePlanEnds follows every upload from its beginning through all outcomes of its steps, and checks that it takes
// no step twice.
func TestChoosePlanEnds(t *testing.T) {
	t.Parallel()
	var follow func(f facts, before []step)
	follow = func(f facts, before []step) {
		p := choosePlan(f)
		if p.next == planned {
			return
		}
		if slices.Contains(before, p.next) {
			t.Fatalf("%+v: step %d after %v", f, p.next, before)
		}
		before = append(slices.Clip(before), p.next)
		outcomes := func(is *chance) {
			for _, *is = range []chance{none, ready} {
				follow(f, before)
			}
		}
		switch p.next {
		case readDestination:
			f.destination = unreadable
			follow(f, before)
			f.destination = readIt
			follow(f, before)
			if f.multipart == untried && f.compose == untried {
				f.free = untried
				follow(f, before)
			}
		case tryFree:
			outcomes(&f.free)
		case tryMultipart:
			outcomes(&f.multipart)
		case tryCompose:
			outcomes(&f.compose)
		}
	}
	allFacts(func(f facts) {
		if f.destination == unread && f.free == none && f.multipart != ready && f.compose != ready {
			follow(f, nil)
		}
	})
}

// TestReasons checks that the reasons keep their order, and that each is reported once.
func TestReasons(t *testing.T) {
	t.Parallel()
	var none Reasons
	first := none.and("a")
	if all := first.and("b").and("a"); all.String() != "a; b" || first.and("c").String() != "a; c" || none.String() != "" {
		t.Errorf("%q", all)
	}
}
