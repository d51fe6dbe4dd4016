package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/crowd"
)

// ErrNameInUse means that another live worker has the name of this one.
var ErrNameInUse = errors.New("another live worker has this name")

// silentAfter is the number of beats after which a worker that published none is silent: it has probably
// died.
const silentAfter = 3

// nameLook is the time between two looks at the beats of another worker.
const nameLook = 250 * time.Millisecond

// takeName waits until no other live worker has the name of this one. A live worker publishes a beat
// within silentAfter intervals: the error then wraps [ErrNameInUse]. A worker that was killed
// publishes none, and its name is free. If NATS does not answer, takeName returns nil, and a beat
// will find out.
func (w *Worker) takeName(ctx context.Context) error {
	var seen uint64
	var end time.Time
	for ctx.Err() == nil {
		e, err := w.q.open.Load().workers.Get(ctx, detailPrefix+w.opts.Name)
		switch {
		case err != nil:
			return nil // there is none, or NATS does not answer
		case seen == 0:
			seen, end = e.Revision(), time.Now().Add(silentAfter*w.beatInterval(ctx))
			w.log.Info("an earlier worker had this name: wait to see whether it lives")
		case e.Revision() != seen:
			return nameInUse(e)
		case time.Now().After(end):
			w.revision = seen
			return nil
		}
		pause(ctx, nameLook)
	}
	return nil
}

// beatInterval returns the interval of the beats of the workers that are there.
func (w *Worker) beatInterval(ctx context.Context) time.Duration {
	found, err := conditions(ctx, w.q.open.Load().workers)
	if err != nil {
		return crowd.MaxInterval
	}
	return crowd.Interval(len(found))
}

// publishDetail publishes the detail of this worker under its name, unless another worker has taken the
// name since the last beat. The error then wraps [ErrNameInUse].
func (w *Worker) publishDetail(ctx context.Context, workers jetstream.KeyValue, detail []byte) error {
	key := detailPrefix + w.opts.Name
	for {
		var revision uint64
		var err error
		if w.revision == 0 {
			revision, err = workers.Create(ctx, key, detail)
		} else {
			revision, err = workers.Update(ctx, key, detail, w.revision)
		}
		if err == nil {
			w.revision = revision
			return nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) && !wrongRevision(err) {
			return err
		}
		e, err := workers.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			w.revision = 0 // it has expired, or JetStream was wiped
			continue
		}
		if err != nil {
			return err
		}
		var s WorkerStatus
		if json.Unmarshal(e.Value(), &s) != nil || s.Run != w.run {
			return nameInUse(e)
		}
		w.revision = e.Revision() // the reply to an earlier beat was lost
	}
}

// nameInUse returns the error about the worker of an entry.
func nameInUse(e jetstream.KeyValueEntry) error {
	var s WorkerStatus
	_ = json.Unmarshal(e.Value(), &s)
	return fmt.Errorf("%w: %q is process %d on %s; stop it, or give this worker another --name", ErrNameInUse, s.Name, s.PID, s.Host)
}
