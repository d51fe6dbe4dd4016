package fleet

import (
	"errors"
	"fmt"
	"slices"
)

// ErrEndpoint means that files were submitted to one endpoint, and a worker uploads to another one.
// It is another service, or another name of the same one, with which the worker cannot continue
// the uploads of other workers.
var ErrEndpoint = errors.New("the endpoint is not that of the fleet")

// kindEndpoint is the class of ErrEndpoint of a file.
const kindEndpoint = "endpoint"

// refuses returns an error if t is not signed with a key that the worker accepts, or was submitted to another endpoint than
// that of the worker, or to a bucket to which the worker must not upload.
func (w *Worker) refuses(t *Task) error {
	if err := w.q.verify(t); err != nil {
		return err
	}
	own := w.uploaders.large.Endpoint()
	switch {
	case len(w.opts.Buckets) > 0 && !slices.Contains(w.opts.Buckets, t.Settings.Bucket):
		return fmt.Errorf("gs://%s: %w: it is no --bucket", t.Settings.Bucket, ErrLimits)
	case t.Endpoint == own:
		return nil
	}
	return fmt.Errorf("%w: %s was submitted to %s, and this worker uploads to %s: start it with the --endpoint, or STORAGE_EMULATOR_HOST, of the submit, or submit again", ErrEndpoint, t.Name(), t.Endpoint, own)
}
