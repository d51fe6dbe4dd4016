package retrysim

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/testsize"
)

// eventHeap is a heap of events, with which the tests and a benchmark compare
// the queue.
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

func TestQueueOrder(t *testing.T) {
	seed := testsize.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	waits := []int64{1, 1 << 10, 1 << slotWidth, 1 << (slotWidth + 3), int64(time.Second), int64(time.Minute)}
	for range 20 {
		var q queue
		var h eventHeap
		push := func(e event) {
			q.push(e)
			heap.Push(&h, e)
		}
		for range 200 {
			push(event{at: r.Int64N(int64(time.Second))})
		}
		for i := 0; len(h) > 0; i++ {
			want := heap.Pop(&h).(event)
			got, ok := q.pop()
			if !ok || got.at != want.at {
				t.Fatalf("pop %d = %v, %v, want %v", i, got.at, ok, want.at)
			}
			for n := r.IntN(3); n > 0 && i < 5000; n-- {
				push(event{at: got.at + r.Int64N(waits[r.IntN(len(waits))])})
			}
		}
		if e, ok := q.pop(); ok {
			t.Fatalf("pop of an empty queue = %v", e)
		}
	}
}

// TestQueueSameTime checks that events of the same time are popped in the order
// of their push, even if they are pushed while that time is processed.
func TestQueueSameTime(t *testing.T) {
	for _, at := range []int64{5, 5 << slotWidth} {
		var q queue
		var last int
		push := func(i int) { q.push(event{at: at, do: func() { last = i }}) }
		for i := range 100 {
			push(i)
		}
		for i := range 200 {
			e, ok := q.pop()
			if !ok {
				t.Fatalf("pop %d found no event", i)
			}
			if e.do(); last != i {
				t.Fatalf("pop %d = event %d", i, last)
			}
			if i < 100 {
				push(i + 100)
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
		{"single", Scenario{Capacity: 10, single: true}, []step{{0, 100, 1}, {99 * ms, 100, 0}, {100 * ms, 100, 1}, {s, 100, 1}}},
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

// pushPopper is the interface of the queues that the benchmark compares.
type pushPopper interface {
	push(event)
	pop() (event, bool)
}

type heapQueue struct{ h eventHeap }

func (q *heapQueue) push(e event)       { heap.Push(&q.h, e) }
func (q *heapQueue) pop() (event, bool) { return heap.Pop(&q.h).(event), true }

// BenchmarkQueue measures one pop and one push in a queue of a million events,
// for the queue and for a heap. The last line reports the ratio.
func BenchmarkQueue(b *testing.B) {
	cost := map[string]float64{}
	for _, bench := range []struct {
		name string
		q    pushPopper
	}{{"heap", new(heapQueue)}, {"slots", new(queue)}} {
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
				for _, e := range start {
					bench.q.push(e)
				}
			}
			i := 0
			for b.Loop() {
				e, _ := bench.q.pop()
				e.at += waits[i%len(waits)]
				bench.q.push(e)
				i++
			}
			cost[bench.name] = float64(b.Elapsed()) / float64(b.N)
			if bench.name == "slots" && cost["heap"] > 0 {
				b.ReportMetric(cost["heap"]/cost["slots"], "times-faster-than-heap")
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
		r, err := newRun(s, "full", nothing, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.limit = limit
		result, err := r.play(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var table, lines strings.Builder
		if err := WriteTable(&table, s, []Result{result}); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(&lines, []Result{result}); err != nil {
			t.Fatal(err)
		}
		cut := limit == 10
		if result.CutOff != cut || strings.Contains(table.String(), "cut off") != cut || strings.Contains(lines.String(), `"cut_off":true`) != cut {
			t.Errorf("limit %d: CutOff = %v\n%s%s", limit, result.CutOff, table.String(), lines.String())
		}
	}
}
