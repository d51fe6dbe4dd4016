package bucket

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"

	"gcsup/session"
)

// bodyLimit bounds the body of a reply other than a page.
const bodyLimit = 1 << 20

// request returns a request of the JSON API. Parameters whose value is "" are left out. path has the elements of the
// path below /storage/v1.
func request(op session.Op, method string, q url.Values, path ...string) session.Exchange {
	maps.DeleteFunc(q, func(_ string, values []string) bool { return len(values) == 1 && values[0] == "" })
	return session.Exchange{Op: op, Method: method, Path: append([]string{"storage", "v1"}, path...), Query: q.Encode()}
}

// get reads the resource at a path into v.
func get(ctx context.Context, client *session.Client, op session.Op, q url.Values, path []string, v any) session.Reply {
	x := request(op, http.MethodGet, q, path...)
	x.Read = func(_ *session.Reply, resp *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		return err
	}
	return client.Do(ctx, x)
}
