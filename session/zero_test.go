package session_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/wiretest"
	"gcsup/session"
)

// TestZeroClient checks that the zero Client uses http.DefaultTransport and the
// default endpoint, as NewClient with a nil http.Client and an empty endpoint.
func TestZeroClient(t *testing.T) {
	made, err := session.NewClient(nil, "")
	require.NoError(t, err)
	defer func(old http.RoundTripper) { http.DefaultTransport = old }(http.DefaultTransport)
	for name, client := range map[string]*session.Client{"zero": new(session.Client), "NewClient(nil)": made} {
		if got := client.Endpoint(); got != session.DefaultEndpoint {
			t.Errorf("%s: Endpoint() = %q, want %q", name, got, session.DefaultEndpoint)
		}
		var urls []string
		http.DefaultTransport = wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			urls = append(urls, r.URL.Scheme+"://"+r.URL.Host)
			return wiretest.Response(302, http.Header{"Location": {"http://portal.example/"}}, ""), nil
		})
		for op, r := range map[string]session.Reply{
			"start":  client.Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, 0),
			"insert": client.Insert(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, 0, 0, nil),
			"stat":   client.Stat(t.Context(), session.Spec{}),
		} {
			if r.Status != 302 || r.Redirect != "http://portal.example" {
				t.Errorf("%s: %s: %+v, want the redirect", name, op, r)
			}
		}
		if got := strings.Join(urls, " "); got != strings.TrimSpace(strings.Repeat(session.DefaultEndpoint+" ", 3)) {
			t.Errorf("%s: requests to %s, want three to the default endpoint", name, got)
		}
	}
}

// TestZeroURI checks that each exchange with the zero URI and the zero Spec is an
// error.
func TestZeroURI(t *testing.T) {
	var client session.Client
	var none session.URI
	for op, r := range map[string]session.Reply{
		"put":      client.Put(t.Context(), none, chunk.Range{}, 0, nil),
		"query":    client.Query(t.Context(), none),
		"finalize": client.Finalize(t.Context(), none, chunk.Range{}, 0, 0, nil),
		"cancel":   client.Cancel(t.Context(), none),
	} {
		if r.Status != 0 || !errors.Is(r.Err, session.ErrInvalid) {
			t.Errorf("%s: %+v, want ErrInvalid", op, r)
		}
	}
	if err := client.Adopt(none, "bucket"); !errors.Is(err, session.ErrURIMismatch) {
		t.Errorf("Adopt of the zero URI: %v, want ErrURIMismatch", err)
	}
	if err := (session.Spec{}).Validate(); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Validate of the zero Spec: %v, want ErrInvalid", err)
	}
}

// TestZeroValues checks that the zero values of the other types work.
func TestZeroValues(t *testing.T) {
	for _, op := range []session.Op{"", session.OpStart, session.OpPut, session.OpQuery, session.OpFinalize, session.OpCancel, session.OpInsert, session.OpStat} {
		if _, a := session.Decide(session.State{}, session.Reply{Op: op}); a.Step == session.Done || a.Step == session.Send {
			t.Errorf("Decide(zero State, no reply to %q) = %s", op, a.Step)
		}
	}
	if got := new(session.Error).Error(); got != "no reply" {
		t.Errorf("zero Error: %q, want %q", got, "no reply")
	}
	if got := session.Traced(nil, nil); got != http.DefaultTransport {
		t.Errorf("Traced(nil, nil) = %v, want http.DefaultTransport", got)
	}
}
