package upload_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"gcsup/fakegcs"
)

// intruder is another client of a simulation. After a request that makes the object from parts it may
// write the object, and the reply to the request is lost. The uploader must not replace that object,
// unless the upload is canceled.
type intruder struct {
	active   bool
	canceled bool // the upload was canceled, or its source changed, so that it may start over
	wrote    atomic.Bool

	mu  sync.Mutex
	rnd *rand.Rand
}

const intruderContent = "of another client"

// watch returns a transport that shows the requests of the uploader to i, and loses replies.
func (i *intruder) watch(w *world, next http.RoundTripper) http.RoundTripper {
	if !i.active {
		return next
	}
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if !makesObject("compose", req) && !makesObject("multipart", req) {
			return resp, err
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.wrote.Load() || err == nil && resp.StatusCode >= 400 && resp.StatusCode < 500 || i.rnd.IntN(2) == 0 {
			return resp, err
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		// Not by a request, which could be met by a fault.
		w.fails(nil)(w.srv.PutObject(fakegcs.Object{Bucket: spec.Bucket, Name: spec.Object}, strings.NewReader(intruderContent)))
		i.wrote.Store(true)
		return nil, errReset
	})
}
