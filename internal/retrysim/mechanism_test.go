package retrysim

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/internal/testsize"
)

// eventHeap is a heap of events, with which the tests and a benchmark compare
// the wheel.
type eventHeap []event

func (h eventHeap) Len() int           { return len(h) }
func (h eventHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h eventHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)        { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func TestWheelOrder(t *testing.T) {
	seed := testsize.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	waits := []int64{1, 1 << 10, 1 << slotWidth, 1 << (slotWidth + 3), int64(time.Second), int64(time.Minute)}
	for range 20 {
		var w wheel
		var h eventHeap
		push := func(e event) {
			w.push(e)
			heap.Push(&h, e)
		}
		for range 200 {
			push(event{at: r.Int64N(int64(time.Second))})
		}
		for i := 0; len(h) > 0; i++ {
			want := heap.Pop(&h).(event)
			got, ok := w.pop()
			if !ok || got.at != want.at {
				t.Fatalf("pop %d = %v, %v, want %v", i, got.at, ok, want.at)
			}
			for n := r.IntN(3); n > 0 && i < 5000; n-- {
				push(event{at: got.at + r.Int64N(waits[r.IntN(len(waits))])})
			}
		}
		if e, ok := w.pop(); ok {
			t.Fatalf("pop of an empty wheel = %v", e)
		}
	}
}

// TestWheelSameTime checks that events of the same time are popped in the order
// of their push, even if they are pushed while that time is processed.
func TestWheelSameTime(t *testing.T) {
	for _, at := range []int64{5, 5 << slotWidth} {
		var w wheel
		for i := range uint32(100) {
			w.push(event{at: at, client: i})
		}
		for i := range uint32(200) {
			e, ok := w.pop()
			if !ok || e.client != i {
				t.Fatalf("pop %d = %v, %v", i, e.client, ok)
			}
			if i < 100 {
				w.push(event{at: at, client: i + 100})
			}
		}
	}
}

func TestServer(t *testing.T) {
	const ms = int64(time.Millisecond)
	const s = int64(time.Second)
	type step struct{ at, count, want int64 }
	tests := []struct {
		name     string
		scenario Scenario
		steps    []step
	}{
		{"a tenth of a second is queued", Scenario{Capacity: 100}, []step{{0, 50, 10}, {0, 1, 0}, {9 * ms, 1, 0}, {10 * ms, 2, 1}, {10 * s, 50, 10}}},
		{"small capacity queues one", Scenario{Capacity: 3}, []step{{0, 5, 1}, {333_333_333, 1, 0}, {333_333_334, 1, 1}}},
		{"exact over thirds", Scenario{Capacity: 3}, []step{{0, 1, 1}, {s, 1, 1}, {s + 333_333_334, 1, 1}, {s + 666_666_667, 1, 0}, {s + 666_666_668, 1, 1}, {2*s + 2, 1, 1}}},
		{"gate", Scenario{Capacity: 10, gate: true}, []step{{0, 100, 1}, {99 * ms, 100, 0}, {100 * ms, 100, 1}, {s, 100, 1}}},
		{"outage", Scenario{Capacity: 100, Outage: time.Second}, []step{{0, 5, 0}, {s - 1, 5, 0}, {s, 50, 10}, {s, 1, 0}}},
		{"outage later", Scenario{Capacity: 100, Outage: time.Second, start: time.Second}, []step{{0, 50, 10}, {s - 1, 1, 1}, {s, 1, 0}, {2 * s, 50, 10}}},
		// Capacity grows to 100/s in 10 s. After t seconds the credit is 5 t^2
		// requests.
		{"ramp", Scenario{Capacity: 100, Outage: time.Second, ramp: 10 * time.Second},
			[]step{{s, 1, 0}, {s + 447*ms, 1, 0}, {s + 448*ms, 1, 1}, {2 * s, 99, 4}, {3 * s, 99, 10}, {3*s + 100*ms, 99, 2}, {11 * s, 99, 10}, {11*s + 50*ms, 99, 5}}},
		{"a refusal costs half", Scenario{Capacity: 100, refusal: 500}, []step{{0, 12, 10}, {100 * ms, 0, 0}, {100 * ms, 12, 10}, {150 * ms, 5, 5}, {200 * ms, 1, 1}, {200 * ms, 0, 0}}},
		{"refusals use all capacity", Scenario{Capacity: 100, refusal: 500}, []step{{0, 10, 10}, {15 * ms, 2, 1}, {20 * ms, 1, 0}, {25 * ms, 1, 0}, {35 * ms, 1, 1}}},
		{"upper limits", Scenario{Capacity: MaxCapacity, Outage: MaxOutage, ramp: 10 * time.Minute},
			[]step{{int64(MaxOutage) - 1, MaxClients, 0}, {int64(MaxOutage) + int64(5*time.Minute), MaxClients, MaxClients}, {int64(MaxOutage) + int64(time.Hour), MaxClients, MaxClients}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(test.scenario)
			for i, step := range test.steps {
				if got := server.admit(step.at, step.count); got != step.want {
					t.Errorf("step %d: admit(%v, %d) = %d, want %d", i, time.Duration(step.at), step.count, got, step.want)
				}
			}
		})
	}
}

// queue is the interface of the queues that the benchmark compares.
type queue interface {
	push(event)
	pop() (event, bool)
}

type heapQueue struct{ h eventHeap }

func (q *heapQueue) push(e event)       { heap.Push(&q.h, e) }
func (q *heapQueue) pop() (event, bool) { return heap.Pop(&q.h).(event), true }

// BenchmarkQueue measures one pop and one push in a queue of a million events,
// for the wheel and for a heap. The last line reports the ratio.
func BenchmarkQueue(b *testing.B) {
	cost := map[string]float64{}
	for _, bench := range []struct {
		name string
		q    queue
	}{{"heap", new(heapQueue)}, {"wheel", new(wheel)}} {
		b.Run(bench.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 0))
			waits := make([]int64, 1<<16)
			for i := range waits {
				waits[i] = r.Int64N(32 * int64(time.Second))
			}
			var start []event
			for range 1_000_000 {
				start = append(start, event{at: r.Int64N(32 * int64(time.Second))})
			}
			slices.SortFunc(start, func(a, b event) int { return cmp.Compare(a.at, b.at) })
			if h, ok := bench.q.(*heapQueue); ok {
				h.h = start
			} else {
				w := new(wheel)
				for _, e := range start {
					w.push(e)
				}
				bench.q = w
			}
			i := 0
			for b.Loop() {
				e, _ := bench.q.pop()
				e.at += waits[i%len(waits)]
				bench.q.push(e)
				i++
			}
			cost[bench.name] = float64(b.Elapsed()) / float64(b.N)
			if bench.name == "wheel" && cost["heap"] > 0 {
				b.ReportMetric(cost["heap"]/cost["wheel"], "times-faster-than-heap")
			}
		})
	}
}

// TestCutOff checks that the result of a run with too many requests has CutOff.
func TestCutOff(t *testing.T) {
	s, err := Lookup("herd")
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{10, maxEvents} {
		r := newRun(s, "full", backoff.Policy{Jitter: backoff.FullJitter}, 1)
		r.limit = limit
		if err := r.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		var table, lines strings.Builder
		if err := WriteTable(&table, s, []Result{r.result}); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(&lines, []Result{r.result}); err != nil {
			t.Fatal(err)
		}
		cut := limit == 10
		if r.result.CutOff != cut || strings.Contains(table.String(), "cut off") != cut || strings.Contains(lines.String(), `"cut_off":true`) != cut {
			t.Errorf("limit %d: CutOff = %v\n%s%s", limit, r.result.CutOff, table.String(), lines.String())
		}
	}
}
