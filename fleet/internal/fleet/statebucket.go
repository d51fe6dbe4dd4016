package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"gcsup/backoff"
	"gcsup/internal/bucket"
	"gcsup/internal/checksum"
	"gcsup/session"
)

// stateBucket reads and writes small objects beside the saved uploads.
type stateBucket struct {
	client         *session.Client
	bucket, prefix string // the prefix is "" or ends with "/"
	policy         backoff.Policy
}

func newStateBucket(hc *http.Client, endpoint, bucket, prefix string, policy backoff.Policy) (*stateBucket, error) {
	client, err := session.NewClient(hc, endpoint)
	if err != nil {
		return nil, err
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &stateBucket{client: client, bucket: bucket, prefix: prefix, policy: policy}, nil
}

var (
	errNoObject   = errors.New("the object does not exist")
	errGeneration = errors.New("the object has another generation")
)

// stateTimeout bounds one request.
const stateTimeout = 10 * time.Second

// stateFor bounds the retries of a request.
const stateFor = 2 * time.Minute

func (b *stateBucket) url(name string) string { return "gs://" + b.bucket + "/" + b.prefix + name }

func (b *stateBucket) spec(name string) session.Spec {
	return session.Spec{Bucket: b.bucket, Object: b.prefix + name, ContentType: "application/octet-stream", CacheControl: "no-store"}
}

// read returns the content of an object and its generation. The error wraps errNoObject if it does not exist.
func (b *stateBucket) read(ctx context.Context, name string) (content []byte, generation int64, err error) {
	err = b.repeat(ctx, name, func(ctx context.Context) session.Reply {
		// The refusal of a download does not show whether it is from the service.
		r := b.client.Stat(ctx, b.spec(name))
		if r.Status != http.StatusOK || r.Object == nil {
			return r
		}
		generation = r.Object.Generation
		content, r = bucket.Read(ctx, b.client, b.spec(name), generation)
		return r
	})
	return content, generation, err
}

// write makes or replaces an object. If generation is not nil, the error wraps errGeneration unless the object has that
// generation, where 0 means that there is none.
func (b *stateBucket) write(ctx context.Context, name string, content []byte, generation *int64) error {
	spec, crc := b.spec(name), checksum.Update(0, content)
	spec.IfGenerationMatch = generation
	return b.repeat(ctx, name, func(ctx context.Context) session.Reply {
		var body io.Reader = bytes.NewReader(content)
		return b.client.Insert(ctx, spec, int64(len(content)), crc, body)
	})
}

// list returns the names of the objects that begin with dir.
func (b *stateBucket) list(ctx context.Context, dir string) (names []string, err error) {
	query := bucket.Query{Bucket: b.bucket, Prefix: b.prefix + dir}
	for {
		var page *bucket.Page
		err := b.repeat(ctx, dir, func(ctx context.Context) (r session.Reply) {
			page, r = bucket.List(ctx, b.client, query)
			return r
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page.Objects {
			names = append(names, strings.TrimPrefix(o.Name, b.prefix))
		}
		if query.PageToken = page.NextPageToken; query.PageToken == "" {
			return names, nil
		}
	}
}

// repeat makes an exchange until its reply is not a transient failure.
func (b *stateBucket) repeat(ctx context.Context, name string, exchange func(context.Context) session.Reply) error {
	waiter := backoff.Waiter{Policy: b.policy, Budget: backoff.Budget{For: stateFor}}
	defer waiter.Close()
	for refreshed := false; ; {
		once, cancel := context.WithTimeout(ctx, stateTimeout)
		r := exchange(once)
		cancel()
		failed := r.Refusal()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case r.Status >= 200 && r.Status < 300 && !r.Retryable():
			return nil
		case r.Status == http.StatusUnauthorized && !refreshed:
			refreshed = true // the HTTP client refreshes the credentials
			continue
		case r.Status == http.StatusNotFound && r.FromService:
			return fmt.Errorf("%s: %w (%w)", b.url(name), errNoObject, session.ErrNotFound)
		case r.Status == http.StatusPreconditionFailed:
			return fmt.Errorf("%s: %w", b.url(name), errGeneration)
		case !r.Retryable():
			return fmt.Errorf("%s: %w", b.url(name), failed)
		}
		if err := waiter.Wait(ctx, backoff.Failure{RetryAfter: r.RetryAfter}); err != nil {
			failed.Kind = session.ErrRetriesExhausted
			return fmt.Errorf("%s: %w", b.url(name), failed)
		}
	}
}
