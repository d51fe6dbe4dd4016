package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrEndpoint means that files were submitted to one endpoint, and a worker uploads to another one.
// It is another service, or another name of the same one, with which the worker cannot continue
// the uploads of other workers.
var ErrEndpoint = errors.New("the endpoint is not that of the fleet")

// kindEndpoint is the class of ErrEndpoint of a file.
const kindEndpoint = "endpoint"

// refuses returns an error if t was submitted to another endpoint than that of the worker.
func (w *Worker) refuses(t *Task) error {
	own := w.uploaders.large.Endpoint()
	if t.Endpoint == "" || t.Endpoint == own {
		return nil
	}
	return fmt.Errorf("%w: %s was submitted to %s, and this worker uploads to %s: start it with the --endpoint, or STORAGE_EMULATOR_HOST, of the submit, or submit again", ErrEndpoint, t.Name(), t.Endpoint, own)
}

// accepts returns an error if no live worker, or not the tasks in the queue, have the endpoint of
// files. Otherwise all files of a submit with a wrong endpoint would fail. advice is what the user can do.
func (q *Queue) accepts(ctx context.Context, endpoint, advice string) error {
	queued, err := q.anyTask(ctx)
	if err != nil {
		return err
	}
	if queued != nil && queued.Endpoint != "" && queued.Endpoint != endpoint {
		return fmt.Errorf("%w: the queue has files for %s, and these are for %s: %s, wait until the queue is empty, or empty it with gcsup-fleet cancel", ErrEndpoint, queued.Endpoint, endpoint, advice)
	}
	same, other := false, WorkerStatus{}
	err = eachOf(ctx, q.open.Load().workers, detailPrefix+"*", func(e jetstream.KeyValueEntry) error {
		var s WorkerStatus
		if json.Unmarshal(e.Value(), &s) != nil || s.Endpoint == "" {
			return nil // written by another version
		}
		if s.Endpoint == endpoint {
			same = true
		} else {
			other = s
		}
		return nil
	})
	if err == nil && !same && other.Name != "" {
		err = fmt.Errorf("%w: the worker %s uploads to %s, and these files are for %s: %s, or stop that worker", ErrEndpoint, other.Name, other.Endpoint, endpoint, advice)
	}
	return err
}

// anyTask returns a task in the queue, or nil if there is none that can be read.
func (q *Queue) anyTask(ctx context.Context) (*Task, error) {
	stream := q.open.Load().stream
	info, err := stream.Info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return nil, err
	}
	msg, err := stream.GetMsg(ctx, info.State.FirstSeq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil // a worker has finished it meanwhile
	}
	if err != nil {
		return nil, err
	}
	t, err := decodeTask(msg.Data)
	if err != nil {
		return nil, nil
	}
	return t, nil
}
