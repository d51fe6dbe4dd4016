package official

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cloud.google.com/go/storage"
)

// uploadFaults uploads while the emulator fails requests.
func (l *library) uploadFaults(ctx context.Context) error {
	const chunkSize = 1 << 20
	p := content(5<<20 + 7)
	for i, fault := range []string{
		`{"match": {"op": "start"}, "times": 2, "do": {"effect": "status", "status": 503}}`,
		`{"match": {"op": "start"}, "do": {"effect": "reset"}}`,
		`{"match": {"op": "put"}, "skip": 1, "times": 2, "do": {"effect": "status", "status": 503}}`,
		`{"match": {"op": "put"}, "skip": 1, "do": {"effect": "status", "status": 429}}`,
		`{"match": {"op": "put"}, "skip": 1, "do": {"effect": "status-after", "status": 503, "bytes": 1572864}}`,
		`{"match": {"op": "put"}, "skip": 2, "do": {"effect": "reset"}}`,
		`{"match": {"op": "put"}, "skip": 2, "do": {"effect": "cut-request", "bytes": 300000}}`,
		`{"match": {"op": "put"}, "skip": 2, "do": {"effect": "lose-reply"}}`,
		`{"match": {"op": "finalize"}, "do": {"effect": "status", "status": 503}}`,
		`{"match": {"op": "finalize"}, "do": {"effect": "reset"}}`,
		`{"match": {"op": "finalize"}, "do": {"effect": "lose-reply"}}`,
	} {
		name := fmt.Sprintf("faults/upload-%d", i)
		if err := l.through(fault, func() error { _, err := l.write(ctx, name, p, chunkSize, nil); return err }); err != nil {
			return err
		}
		if err := l.holds(ctx, name, p); err != nil {
			return fmt.Errorf("after %s: %w", fault, err)
		}
	}
	// An object smaller than a chunk is sent in one request, which is retried.
	for _, do := range []string{`{"effect": "status", "status": 503}`, `{"effect": "status", "status": 429}`, `{"effect": "reset"}`, `{"effect": "lose-reply"}`} {
		if err := l.through(`{"match": {"op": "insert"}, "do": `+do+`}`, func() error { _, err := l.write(ctx, "faults/small", p[:1000], chunkSize, nil); return err }); err != nil {
			return err
		}
		if err := l.holds(ctx, "faults/small", p[:1000]); err != nil {
			return fmt.Errorf("after %s: %w", do, err)
		}
	}
	return nil
}

// otherFaults runs the other operations while the emulator fails.
func (l *library) otherFaults(ctx context.Context) error {
	p := content(3 * granularity)
	source := l.bucket.Object("faults/source")
	for _, do := range []string{`{"effect": "status", "status": 503}`, `{"effect": "status", "status": 429}`, `{"effect": "reset"}`, `{"effect": "lose-reply"}`} {
		if _, err := l.write(ctx, "faults/source", p, 0, nil); err != nil {
			return err
		}
		for _, step := range []struct {
			op string
			do func() error
		}{
			{"read", func() error { return l.reads(ctx, "faults/source", 0, -1, p) }},
			{"get", func() error { _, err := source.Attrs(ctx); return err }},
			{"list", func() error {
				attrs, err := l.bucket.Objects(ctx, &storage.Query{Prefix: "faults/source"}).Next()
				if err == nil && attrs.Name != "faults/source" {
					return fmt.Errorf("got object %s", attrs.Name)
				}
				return err
			}},
			{"patch", func() error {
				_, err := source.Update(ctx, storage.ObjectAttrsToUpdate{ContentType: "text/x-a"})
				return err
			}},
			{"compose", func() error { _, err := l.bucket.Object("faults/composed").ComposerFrom(source).Run(ctx); return err }},
			{"rewrite", func() error { _, err := l.bucket.Object("faults/copied").CopierFrom(source).Run(ctx); return err }},
			{"delete", func() error {
				// If the reply is lost, the second request finds no object.
				if err := source.Delete(ctx); !strings.Contains(do, "lose") || !errors.Is(err, storage.ErrObjectNotExist) {
					return err
				}
				return nil
			}},
		} {
			if err := l.through(`{"match": {"op": "`+step.op+`"}, "do": `+do+`}`, step.do); err != nil {
				return err
			}
		}
		for _, name := range []string{"faults/composed", "faults/copied"} {
			if err := l.holds(ctx, name, p); err != nil {
				return fmt.Errorf("after %s: %w", do, err)
			}
		}
		if err := l.gone(ctx, "faults/source"); err != nil {
			return err
		}
	}
	// After a cut reply the download resumes at its offset.
	return l.through(`{"match": {"op": "read"}, "do": {"effect": "cut-reply", "bytes": 300000}}`, func() error {
		return l.reads(ctx, "faults/composed", 0, -1, p)
	})
}

// through runs an operation with a fault, and checks that the fault took effect.
func (l *library) through(fault string, do func() error) error {
	if err := l.send(http.MethodPost, "["+fault+"]", nil); err != nil {
		return err
	}
	if err := do(); err != nil {
		return fmt.Errorf("through %s: %w", fault, err)
	}
	var plan []struct{ Done bool }
	if err := l.send(http.MethodGet, "", &plan); err != nil {
		return err
	}
	if len(plan) != 1 || !plan[0].Done {
		return fmt.Errorf("the fault %s did not act", fault)
	}
	return l.send(http.MethodDelete, "", nil)
}

// send makes a request about the emulator's fault plan.
func (l *library) send(method, body string, reply any) error {
	req, err := http.NewRequest(method, l.control, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s", method, l.control, resp.Status)
	}
	if reply == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(reply)
}
