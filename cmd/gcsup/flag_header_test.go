package main

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"gcsup/internal/cli/exit"
)

func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		given headerFlag
		want  http.Header
	}{
		{nil, http.Header{}},
		{headerFlag{"x-a=1"}, http.Header{"X-A": {"1"}}},
		{headerFlag{"X-A=1,X-B=2"}, http.Header{"X-A": {"1"}, "X-B": {"2"}}},
		{headerFlag{"X-A=1", "X-B=2"}, http.Header{"X-A": {"1"}, "X-B": {"2"}}},
		{headerFlag{"X-A=1", "x-a=2"}, http.Header{"X-A": {"1", "2"}}},
		{headerFlag{`"X-A=1,2",X-B=`}, http.Header{"X-A": {"1,2"}, "X-B": {""}}},
		{headerFlag{"X-A=k=v=="}, http.Header{"X-A": {"k=v=="}}},
	} {
		got, err := c.given.header()
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", []string(c.given), got, err, c.want)
		}
	}
}

// TestRefusedHeadersAreNotEchoed checks that errors do not contain a refused
// header, because even its key may be a secret.
func TestRefusedHeadersAreNotEchoed(t *testing.T) {
	for _, given := range []string{
		"hunter2", "=hunter2", "X-A hunter2", "X-A=ok,hunter2", "hunter2 x=1", "X-A=hunter2\n", "X-A=hunter2\x00",
		`"X-A=hunter2`, "X-A=1\nX-B=hunter2", "Content-Range=hunter2", "host=hunter2", "x-goog-gcs-idempotency-token=hunter2", "",
	} {
		_, err := headerFlag{given}.header()
		if !errors.Is(err, exit.ErrUsage) {
			t.Errorf("%q: error %v, want a usage error", given, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error for %q contains it: %v", given, err)
		}
	}
}
