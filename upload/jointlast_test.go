package upload_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"gcsup/upload"
)

// jointLast is the last process of a [joint]. It has few files, and ends without an interruption.
//
// The other processes always have a next file. What it takes and gives back lets those continue that wait, even if
// something else should have. Here the last files wait only for each other. The link is so slow that ten seconds of
// its rate are not more than the bytes that these files have at risk.
type jointLast struct {
	*joint
	up        *upload.Uploader
	ctx       context.Context
	canceled  context.Context // of some calls; ctx if none is canceled
	calls     []func()
	numbers   [jointKinds]int
	remaining int64 // bytes
}

func (j *joint) last() {
	j.rnd = rand.New(rand.NewPCG(j.seed, 7)) // what happened before decides nothing here
	l := &jointLast{joint: j}
	time.Sleep(time.Minute) // what the ended processes have written shares the link until it has passed
	j.link.setRate(j.rate() / 16)
	first, least := q, 2*q
	if j.rnd.IntN(2) == 0 {
		first, least = jointSession, jointSession // one session at a time, or two
	}
	l.up, l.ctx = j.process(nil, first, least)
	var cancel context.CancelFunc
	l.canceled, cancel = context.WithCancel(l.ctx)
	defer cancel()
	cancels := l.rnd.IntN(2) == 0
	if !cancels {
		l.canceled = l.ctx
	}
	for _, what := range l.rnd.Perm(5)[:1+l.rnd.IntN(2)] {
		switch what {
		case 0:
			l.files(0, 8+l.rnd.IntN(9))
		case 1:
			l.files(3, 2+l.rnd.IntN(5))
		case 2:
			l.batches(0, 1+l.rnd.IntN(8))
		case 3:
			l.batches(3, 1+l.rnd.IntN(4))
		case 4:
			l.streams(2 + l.rnd.IntN(4))
		}
	}
	r := j.run
	var calls, events sync.WaitGroup
	for _, call := range l.calls {
		calls.Go(call)
	}
	go func() {
		calls.Wait()
		close(r.ended)
	}()
	j.log("the last process has %d files, %d bytes", l.numbers, l.remaining)
	delay, what, length := l.between(0, 20*time.Second), l.rnd.IntN(5), l.between(time.Second, 20*time.Second)
	if cancels {
		events.Go(func() {
			time.Sleep(delay)
			j.log("some calls are canceled")
			cancel()
		})
	}
	events.Go(func() { l.disturb(what, length) })
	events.Wait()
	// One file at a time, and some of the bytes again. A lost wake-up is found with any bound.
	most := jointRecovery + time.Duration(3*float64(l.remaining)/min(j.link.rate, j.link.each)*float64(time.Second))
	began := time.Now()
	select {
	case <-r.ended:
		j.log("the last process has ended after %v, at most %v", time.Since(began), most)
	case <-time.After(most):
		j.t.Errorf("seed %d: the last process has not ended after %v", j.seed, most)
		j.interrupt()
	}
	r.cancel()
	synctest.Wait()
	if sessions, whole, _ := r.risk.Amounts(); sessions+whole != 0 {
		j.t.Errorf("seed %d: %d bytes of sessions and %d of others are at risk after the end", j.seed, sessions, whole)
	}
}

// disturb lets at most one thing happen.
func (l *jointLast) disturb(what int, length time.Duration) {
	switch what {
	case 0, 1:
		begin, end := l.outage()
		begin()
		time.Sleep(length)
		end()
	case 2:
		l.log("paused")
		l.pause.SetLimit(0)
		time.Sleep(length)
		l.log("not paused")
		l.pause.SetLimit(upload.Unlimited)
	case 3:
		l.busy()
	}
}

// name returns the name of another object.
func (l *jointLast) name(kind jointKind, size int64) string {
	l.numbers[kind]++
	l.remaining += size
	name := fmt.Sprintf("%v/last/%d", kind, l.numbers[kind])
	l.expect(name, size)
	return name
}

// job returns a job for one of the paths of the joint simulation.
func (l *jointLast) job(path int) (jointKind, upload.Job) {
	kind := jointLarge
	if path == 0 {
		kind = jointSmall
	}
	size := l.sizes[path]
	spec := upload.Spec{Bucket: "bkt", Object: l.name(kind, size)}
	return kind, upload.Job{Path: l.paths[path], Size: size, ModTime: l.start, Spec: spec}
}

// call adds a call, which may be canceled.
func (l *jointLast) call(do func(ctx context.Context)) {
	ctx := l.ctx
	if l.rnd.IntN(3) == 0 {
		ctx = l.canceled
	}
	l.calls = append(l.calls, func() { do(ctx) })
}

func (l *jointLast) files(path, n int) {
	for range n {
		kind, job := l.job(path)
		l.call(func(ctx context.Context) {
			res, err := l.up.File(ctx, job.Path, job.Spec)
			l.ended(ctx, kind, res, err)
		})
	}
}

// batches adds two batches, which share a limiter, and have memory for one small file each or for all.
func (l *jointLast) batches(path, n int) {
	up := upload.Tuned(l.up, nil, l.small*l.rnd.Int64N(2))
	for range 2 {
		var kind jointKind
		jobs := make([]upload.Job, n)
		for i := range jobs {
			kind, jobs[i] = l.job(path)
		}
		l.call(func(ctx context.Context) {
			for res, err := range up.Files(ctx, slices.Values(jobs), nil) {
				l.ended(ctx, kind, res, err)
			}
		})
	}
}

func (l *jointLast) streams(n int) {
	for range n {
		size := q + l.rnd.Int64N(q)
		name := l.name(jointStream, size)
		l.call(func(ctx context.Context) {
			res, err := l.up.Reader(ctx, pieces(data(size)), upload.Spec{Bucket: "bkt", Object: name})
			l.ended(ctx, jointStream, res, err)
		})
	}
}
