package atrisk

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/require"
)

const mib = 1 << 20

// amounts returns how many bytes are taken, and the bound.
func amounts(b *Bound) (taken, bound int64) {
	sessions, whole, bound := b.Amounts()
	return sessions + whole, bound
}

// begins reports whether a whole request of n bytes may begin now.
func begins(t *testing.T, a *Bound, n int64) *Risk {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := a.Insert(n)
	if r.Take(ctx) != nil {
		return nil
	}
	return r
}

// The bound grows with the commits from 16 to 64 MiB, or to ten seconds of the rate of the last five.
func TestBoundGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Bound
		bound := func(want int64) {
			t.Helper()
			if _, got := amounts(&a); got != want*mib {
				t.Errorf("the bound is %d MiB, want %d", got/mib, want)
			}
		}
		bound(16)
		r := begins(t, &a, 10*mib)
		r.Committed(10 * mib)
		r.End()
		bound(26)
		for range 5 {
			time.Sleep(time.Second)
			r := begins(t, &a, 20*mib)
			r.Committed(20 * mib)
			r.End()
		}
		bound(220)
		time.Sleep(time.Second)
		bound(200)
		time.Sleep(4 * time.Second)
		bound(64)
		time.Sleep(time.Hour)
		bound(64)
	})
}

// Requests that began together and end together do not raise the bound beyond ten seconds of their rate.
func TestBoundTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Bound
		var all []*Risk
		for range 10 {
			r := a.Insert(20 * mib)
			r.of.set(r, r.first)
			all = append(all, r)
		}
		time.Sleep(20 * time.Second)
		for _, r := range all {
			r.Committed(20 * mib)
			r.End()
		}
		if _, bound := amounts(&a); bound < 95*mib || bound > 105*mib {
			t.Errorf("the bound is %d MiB after 200 MiB in 20 s, want about 100", bound/mib)
		}
		session := a.Session()
		session.of.set(session, unknown)
		time.Sleep(time.Minute)
		if session.Committed(50 * mib); a.bound() != 100*mib { // what a session commits arrived just now
			t.Errorf("the bound is %d MiB after a session has committed 50 MiB", a.bound()/mib)
		}
	})
}

// Beyond the bound nothing begins. A request that is larger than the bound begins if there is no other one. Sessions
// leave half of the bound to other requests.
func TestBoundPermits(t *testing.T) { synctest.Test(t, testBoundPermits) }

func testBoundPermits(t *testing.T) {
	var a Bound
	first, second := begins(t, &a, 8*mib), begins(t, &a, 8*mib)
	if first == nil || second == nil || begins(t, &a, 1) != nil {
		t.Fatal("before the first commit, 16 MiB may not begin, or more may")
	}
	first.Committed(100 * mib)
	time.Sleep(time.Minute)
	third := begins(t, &a, 48*mib)
	if third == nil || begins(t, &a, 1) != nil {
		t.Fatal("64 MiB may not begin, or more may")
	}
	third.End()
	if begins(t, &a, 100*mib) != nil {
		t.Error("a request that is larger than the bound begins beside others")
	}
	first.End()
	second.End()
	large := begins(t, &a, 100*mib)
	if large == nil || begins(t, &a, 1) != nil {
		t.Error("a request that is larger than the bound does not begin alone")
	}
	large.End()
	session := a.Session()
	require.NoError(t, session.Take(t.Context()))
	if taken, _ := amounts(&a); taken != unknown {
		t.Errorf("a session takes %d bytes", taken)
	}
	session.Hold(40 * mib)
	if first = begins(t, &a, 24*mib); first == nil {
		t.Fatal("24 MiB do not begin beside 40 MiB of a session")
	}
	if second = begins(t, &a, 8*mib); second == nil || begins(t, &a, 1) != nil {
		t.Error("half of the bound may not begin beside a session, or more may")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a.Session().Take(ctx) == nil {
		t.Error("a session begins beyond the bound")
	}
	first.End()
	second.End()
	session.End()
	if taken, _ := amounts(&a); taken != 0 || a.waiting[insertRisk].Len() > 0 {
		t.Errorf("%d bytes are taken, %d requests wait", taken, a.waiting[insertRisk].Len())
	}
}

// A request that waits begins when bytes are given back or committed, in the order of the requests. A smaller one does
// not overtake a larger one.
func TestBoundOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Bound
		first := begins(t, &a, 20*mib)
		var mu sync.Mutex
		var order []int64
		var taken []*Risk
		for _, n := range []int64{70 * mib, 30 * mib} {
			go func() {
				r := a.Insert(n)
				if err := r.Take(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order, taken = append(order, n), append(taken, r)
			}()
			synctest.Wait()
		}
		if a.waiting[insertRisk].Len() != 2 || len(order) > 0 {
			t.Fatal("nothing waits")
		}
		first.Committed(40 * mib) // 60 MiB may begin now
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%d bytes begin before those that waited longer", order)
		}
		first.End()
		for i, want := range []int64{70 * mib, 30 * mib} {
			synctest.Wait()
			if len(order) != i+1 || order[i] != want {
				t.Fatalf("the order is %d", order)
			}
			taken[i].End()
		}
	})
}

// Parts of a large file that wait do not keep small files waiting until they end, nor do small files the parts.
func TestBoundTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Bound
		begins(t, &a, 4*mib).Committed(100 * mib)
		time.Sleep(time.Minute) // the bound is 64 MiB
		type begun struct {
			part bool
			risk *Risk
		}
		began := make(chan begun, 1000)
		wait := func(part bool, r *Risk) {
			go func() {
				if err := r.Take(t.Context()); err != nil {
					t.Error(err)
				}
				began <- begun{part, r}
			}()
			synctest.Wait()
		}
		for range 100 {
			wait(true, a.Part(5*mib))
		}
		for range 100 {
			wait(false, a.Insert(4*mib))
		}
		var inserts, parts int
		for range 200 {
			b := <-began
			if b.part {
				parts++
			} else {
				inserts++
			}
			if parts+inserts == 100 && (parts < 35 || inserts < 35) {
				t.Errorf("of the first 100 requests, %d are parts and %d are inserts", parts, inserts)
			}
			b.risk.End()
			synctest.Wait()
		}
	})
}

// Requests that take the room of each one that ends do not keep a session waiting.
func TestBoundSessionBesideRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Bound
		begins(t, &a, 4*mib).Committed(100 * mib)
		time.Sleep(time.Minute) // the bound is 64 MiB
		inserts := make(chan *Risk, 200)
		for range 200 {
			go func() {
				r := a.Insert(mib / 2)
				if err := r.Take(t.Context()); err != nil {
					t.Error(err)
				}
				inserts <- r
			}()
		}
		synctest.Wait()
		begun := false
		go func() { begun = a.Session().Take(t.Context()) == nil }()
		synctest.Wait()
		ended := 0
		for ; ended < 80 && !begun; ended++ {
			(<-inserts).End()
			synctest.Wait()
		}
		if !begun {
			t.Errorf("a session has not begun after %d requests", ended)
		}
		for ; ended < 200; ended++ {
			(<-inserts).End()
		}
	})
}

// A request whose context ends leaves the queue, so that those behind it begin.
func TestBoundCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Bound
		first := begins(t, &a, 5*mib)
		defer first.End()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if a.Insert(20*mib).Take(ctx) == nil {
				t.Error("a canceled request begins")
			}
		}()
		synctest.Wait()
		second, begun := a.Insert(10*mib), false
		go func() { begun = second.Take(t.Context()) == nil }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !begun {
			t.Error("the next request does not begin")
		}
		second.End()
	})
}

// A nil Bound has no bound.
func TestBoundNil(t *testing.T) {
	var a *Bound
	r := a.Insert(1 << 40)
	if err := r.Take(t.Context()); r != nil || err != nil || a.Session() != nil {
		t.Errorf("Take = %v", err)
	}
	r.Hold(1)
	r.Committed(1)
	r.End()
}

// queue lets requests wait, in this order, and returns a function that returns the numbers of those that have begun.
func queue(t *testing.T, ctx context.Context, list ...*Risk) (begun func() []int) {
	var mu sync.Mutex
	var order []int
	for i, r := range list {
		go func() {
			if err := r.Take(ctx); err == nil {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			}
		}()
		synctest.Wait()
	}
	return func() []int {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(order)
		return order
	}
}

// All that fits begins when bytes are given back, and not one request for each of them: parts and inserts in turn, and sessions.
func TestBoundAdmitsAllThatFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Bound
		first := begins(t, &a, 16*mib)
		parts, inserts := make([]*Risk, 9), make([]*Risk, 9)
		for i := range parts {
			parts[i], inserts[i] = a.Part(2*mib), a.Insert(2*mib)
		}
		partsBegun, insertsBegun := queue(t, t.Context(), parts...), queue(t, t.Context(), inserts...)
		first.End()
		if p, i := partsBegun(), insertsBegun(); !slices.Equal(p, []int{0, 1, 2, 3}) || !slices.Equal(i, []int{0, 1, 2, 3}) {
			t.Errorf("parts %v and inserts %v begin in 16 MiB", p, i)
		}
		inserts[0].Committed(2 * mib) // raises the bound, to 18 MiB
		if p, i := partsBegun(), insertsBegun(); len(p) != 4 || !slices.Equal(i, []int{0, 1, 2, 3, 4}) {
			t.Errorf("parts %v and inserts %v begin in 18 MiB: inserts are first if both have taken as much", p, i)
		}
		large := a.Session()
		if large.Take(t.Context()) != nil {
			t.Fatal("a session does not begin")
		}
		large.Hold(46 * mib) // with the others, 64 MiB
		sessions := queue(t, t.Context(), a.Session(), a.Session(), a.Session())
		large.Hold(44 * mib)
		if got := sessions(); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("sessions %v begin in 2 MiB", got)
		}
		large.End()
		for _, r := range slices.Concat(parts, inserts) {
			r.End()
		}
		if p, i, s := partsBegun(), insertsBegun(), sessions(); len(p)+len(i)+len(s) != 21 {
			t.Errorf("parts %v, inserts %v and sessions %v have begun in the end", p, i, s)
		}
	})
}

// TestBoundGivesBack checks that a request whose context ends has taken nothing, even if it could begin at the same time, and that one
// which has begun takes no less when it begins again.
func TestBoundGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			var a Bound
			first := begins(t, &a, 16*mib)
			ctx, cancel := context.WithCancel(t.Context())
			begun := queue(t, ctx, a.Insert(5*mib))
			cancel()
			first.End() // often before the request notices that its context has ended
			n := len(begun())
			if taken, _ := amounts(&a); int64(n)*5*mib != taken {
				t.Fatalf("%d MiB are taken by %d requests", taken/mib, n)
			}
		}
		var a Bound
		r := begins(t, &a, 4*mib)
		for _, test := range []struct{ hold, want int64 }{{6, 6}, {2, 4}, {0, 4}} {
			r.Hold(test.hold * mib)
			require.NoError(t, r.Take(t.Context()))
			if taken, _ := amounts(&a); taken != test.want*mib {
				t.Errorf("%d MiB are taken by a request that held %d", taken/mib, test.hold)
			}
		}
		_, before := amounts(&a)
		for _, n := range []int64{0, -1} {
			r.Committed(n)
		}
		if _, bound := amounts(&a); bound != before {
			t.Error("a commit of nothing changes the bound")
		}
	})
}
