package examples

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload"
)

// Proxy is a handler that uploads the body of a request while it arrives. Register
// it for "PUT /{object...}". A body that is cut off makes no object.
type Proxy struct {
	Uploader *upload.Uploader
	Bucket   string
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	spec := upload.Spec{Bucket: p.Bucket, Object: r.PathValue("object"), ContentType: r.Header.Get("Content-Type")}
	if r.Header.Get("If-None-Match") == "*" {
		spec.IfGenerationMatch = new(int64(0)) // only if there is no object
	}
	// The context is done when the client disconnects.
	object := p.Uploader.NewWriter(r.Context(), spec)
	defer object.Abort()
	_, err := io.Copy(object, clientBody{r.Body})
	if err == nil {
		err = object.Close()
	}
	if err != nil {
		http.Error(w, http.StatusText(status(err)), status(err)) // log err, but do not send its text to clients
		return
	}
	w.Header().Set("X-Generation", strconv.FormatInt(object.Result().Object.Generation, 10))
	w.WriteHeader(http.StatusCreated)
}

// clientBody marks errors of the client's body with chunk.ErrRead, like
// Uploader.Reader, to distinguish them from errors of the upload.
type clientBody struct{ io.Reader }

func (b clientBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = errors.Join(chunk.ErrRead, err)
	}
	return n, err
}

// status returns the status for an error. For the client, an error of the service is
// an error of the gateway, because the client does not know the bucket.
func status(err error) int {
	var tooLarge *http.MaxBytesError
	var interrupted *upload.InterruptedError
	var refused *session.Error
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, session.ErrPrecondition):
		return http.StatusPreconditionFailed
	case errors.Is(err, chunk.ErrRead), errors.Is(err, session.ErrInvalid):
		return http.StatusBadRequest
	case errors.As(err, &interrupted) && errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.As(err, &interrupted), errors.Is(err, session.ErrRetriesExhausted), errors.Is(err, session.ErrQuota):
		return http.StatusServiceUnavailable
	case errors.As(err, &refused):
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}
