package fleet

import (
	"errors"
	"fmt"
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
