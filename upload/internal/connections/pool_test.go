package connections

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/upload/internal/atrisk"
)

// TestPoolFewest checks that a free slot goes to the file that has the fewest, even if another one has waited longer.
func TestPoolFewest(t *testing.T) {
	t.Parallel()
	c := Fixed(4)
	first, second := c.Join(nil), c.Join(nil)
	var slots []*Slot
	for range 3 {
		slots = append(slots, first.Await(t.Context(), first.Queue(), nil))
	}
	second.Await(t.Context(), second.Queue(), nil)
	longer, shorter := first.Queue(), second.Queue()
	first.Release(slots[0], 0)
	select {
	case <-shorter:
	default:
		t.Error("the file with the fewest slots did not get the free one")
	}
	select {
	case <-longer:
		t.Error("the file with the most slots got one")
	default:
	}
}

// uplink is a Link with a network whose connections send at a rate that depends on their number.
type uplink struct {
	*Link
	rate          func(connections int) float64 // bytes per second, of all together
	began         time.Time
	limited, down bool // a rate limit holds bytes back for a tenth of the time; the service fails

	mu      sync.Mutex
	sending int
	most    int
}

func newUplink(rate func(int) float64) *uplink {
	u := &uplink{rate: rate, began: time.Now()}
	u.Link = &Link{
		Memory: 128 << 20, Limited: func() bool { return false }, Failing: func() bool { return u.down },
		Held: func() time.Duration {
			if u.limited {
				return time.Since(u.began) / 10
			}
			return time.Since(u.began) / 11
		},
	}
	u.Measure()(0, time.Hour) // one connection is slow
	return u
}

// send sends a number of parts of 1 MiB over at most limit connections, as a file does. It returns their usage.
func (u *uplink) send(ctx context.Context, limit, parts int, bound *atrisk.Bound) Usage {
	share := u.Pool(limit).Join(nil)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range limit {
		workers.Go(func() {
			for {
				mu.Lock()
				if parts--; parts < 0 {
					mu.Unlock()
					return
				}
				place := share.Queue()
				mu.Unlock()
				slot := share.Await(ctx, place, bound.Part(1<<20))
				if slot == nil {
					return
				}
				u.part(slot)
				share.Release(slot, 1<<20)
			}
		})
	}
	workers.Wait()
	return share.Leave()
}

// part sends a part, in pieces of 64 KiB.
func (u *uplink) part(slot *Slot) {
	change := func(n int) float64 {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.sending += n
		u.most = max(u.most, u.sending)
		return u.rate(u.sending) / float64(u.sending)
	}
	each := change(+1)
	for range 16 {
		time.Sleep(time.Duration(float64(64<<10) / each * float64(time.Second)))
		slot.Moved(64 << 10)
		each = change(0)
	}
	slot.Risk.Committed(1 << 20)
	change(-1)
}

// TestTunedPool checks how many connections files use together, over links that limit each connection or all together.
func TestTunedPool(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rate        func(int) float64
		files       int
		limit       int
		with        func(*uplink) // changes the link
		bound       *atrisk.Bound
		least, most int // connections
		need        Need
	}{
		"each":                  {each, 1, 32, nil, nil, 32, 32, Several},
		"shared by four files":  {each, 4, 6, nil, nil, 6, 6, Several},
		"more files than limit": {each, 4, 2, nil, nil, 4, 4, Several},
		"one suffices":          {sharedLink(1), 1, 32, nil, nil, 4, 4, One},
		"a rate limit":          {sharedLink(1), 1, 32, func(u *uplink) { u.limited = true }, nil, 2, 2, Several},
		"an outage":             {each, 1, 32, func(u *uplink) { u.down = true }, nil, 2, 2, Several},
		"bytes at risk":         {each, 1, 32, nil, &atrisk.Bound{}, 16, 32, Several},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := newUplink(test.rate)
				if test.with != nil {
					test.with(u)
				}
				var files sync.WaitGroup
				for range test.files {
					files.Go(func() { u.send(t.Context(), test.limit, 1600/test.files, test.bound) })
				}
				files.Wait()
				if need, _ := u.Need(test.limit); u.most < test.least || u.most > test.most || need != test.need {
					t.Errorf("%d connections, want %d to %d; need %d, want %d", u.most, test.least, test.most, need, test.need)
				}
				if pool := u.Pool(test.limit); len(pool.shares) > 0 || len(pool.slots) > 0 || pool.stop != nil {
					t.Errorf("%d files and %d slots are left", len(pool.shares), len(pool.slots))
				}
			})
		})
	}
}

// TestPoolRemembers checks that the next file begins with the connections of the last one, and that a result that one connection
// suffices is forgotten after ten minutes.
func TestPoolRemembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUplink(each)
		if got := u.send(t.Context(), 16, 1600, nil); got.Connections != 16 || got.Each < 19*mibps || got.Each > 20*mibps || got.Rate < 15*19*mibps || got.Rate > 16*20*mibps {
			t.Errorf("%+v", got)
		}
		u.most = 0
		if u.send(t.Context(), 16, 16, nil); u.most != 16 {
			t.Errorf("the next file began with %d connections", u.most)
		}

		u = newUplink(sharedLink(1))
		need := func(want Need) {
			t.Helper()
			if got, _ := u.Need(16); got != want {
				t.Errorf("need %d, want %d", got, want)
			}
		}
		u.send(t.Context(), 16, 400, nil)
		need(One)
		time.Sleep(measuredFor - time.Second)
		need(One)
		time.Sleep(time.Second)
		need(Unmeasured)
		u.Measure()(0, time.Hour)
		need(Several)
	})
}

// TestLongLinkIsFoundLate checks that the tuner follows the response time while parts are sent. An upload that is resumed may
// have no reply before them, and the first reply may include the time to connect.
func TestLongLinkIsFoundLate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, during time.Duration // response times; 0 is none
		want           bool
		first          int // connections of the first step
	}{
		"no reply before the parts": {0, longReply, true, longLevel},
		"a shorter reply later":     {longReply, longReply / 2, false, longLevel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := newUplink(each)
				if test.before > 0 {
					u.Replied(test.before)
				}
				time.AfterFunc(2*time.Second, func() { u.Replied(test.during) })
				u.send(t.Context(), 32, 1600, nil)
				if tu := u.Pool(32).tuner; tu.long != test.want || tu.steps[0].connections != test.first || u.most != 32 {
					t.Errorf("long %v, steps %+v, %d connections", tu.long, tu.steps, u.most)
				}
			})
		})
	}
}

// TestQueueOfAFile checks that slots are granted in the order of the queue, and that a worker that no longer waits, for a slot or for
// the bytes at risk, takes none.
func TestQueueOfAFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bound atrisk.Bound
		share := Fixed(2).Join(nil)
		first := share.Await(t.Context(), share.Queue(), bound.Part(12<<20))
		ctx, cancel := context.WithCancel(t.Context())
		var order []int
		var slots []*Slot
		await := func(i int, ctx context.Context, n int64) {
			place := share.Queue()
			go func() {
				if slot := share.Await(ctx, place, bound.Part(n)); slot != nil {
					order, slots = append(order, i), append(slots, slot)
				}
			}()
			synctest.Wait()
		}
		await(1, ctx, 8<<20) // has a slot, and waits for the bytes at risk
		await(2, ctx, 1)     // waits for a slot
		await(3, t.Context(), 1)
		await(4, t.Context(), 1)
		if share.Sending() != 1 || len(order) > 0 {
			t.Errorf("%d send, %v began", share.Sending(), order)
		}
		cancel()
		synctest.Wait()
		if share.Sending() != 2 || !slices.Equal(order, []int{3}) {
			t.Errorf("%d send, %v began after two were canceled", share.Sending(), order)
		}
		share.Release(first, 0)
		synctest.Wait()
		if share.Sending() != 2 || !slices.Equal(order, []int{3, 4}) {
			t.Errorf("%d send, %v began", share.Sending(), order)
		}
		for _, slot := range slots {
			share.Release(slot, 0)
		}
		share.Leave()
		if err := bound.Part(100 << 20).Take(t.Context()); err != nil { // nothing is at risk
			t.Error(err)
		}
		if Fixed(0).Join(nil).Queue(); Fixed(-1).tuner.level != 1 {
			t.Error("a fixed pool has no slot")
		}
	})
}
