package main

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gcsup/session"
)

func TestPlan(t *testing.T) {
	long := strings.Repeat("x", 1024)
	for _, c := range []struct {
		sources     []string
		destination string
		want        []job
		err         error
	}{
		{[]string{"dir/a.bin"}, "gs://bkt/b.bin", []job{{"dir/a.bin", "bkt", "b.bin"}}, nil},
		{[]string{"dir/a.bin"}, "gs://bkt", []job{{"dir/a.bin", "bkt", "a.bin"}}, nil},
		{[]string{"dir/a.bin"}, "gs://bkt/", []job{{"dir/a.bin", "bkt", "a.bin"}}, nil},
		{[]string{"dir/a.bin"}, "gs://bkt/x/", []job{{"dir/a.bin", "bkt", "x/a.bin"}}, nil},
		{[]string{"a", "b"}, "gs://bkt/x/", []job{{"a", "bkt", "x/a"}, {"b", "bkt", "x/b"}}, nil},
		{[]string{"a"}, "gs://bkt/x//y #?%41", []job{{"a", "bkt", "x//y #?%41"}}, nil},
		{[]string{"-"}, "gs://bkt/x", []job{{"-", "bkt", "x"}}, nil},
		{[]string{"a"}, "gs://bkt/" + long, []job{{"a", "bkt", long}}, nil},

		{[]string{"-"}, "gs://bkt/x/", nil, errUsage},
		{[]string{"-"}, "gs://bkt", nil, errUsage},
		{[]string{"a", "b"}, "gs://bkt/x", nil, errUsage},
		{[]string{"d/a", "e/a"}, "gs://bkt/x/", nil, errUsage},
		{[]string{"a", "a"}, "gs://bkt", nil, errUsage},
		{[]string{""}, "gs://bkt/x", nil, errUsage},
		{[]string{"a"}, "bkt/x", nil, errUsage},
		{[]string{"gs://bkt/a"}, "gs://bkt/b", nil, errUsage},
		{[]string{"a"}, "s3://bkt/x", nil, errUsage},
		{[]string{"a"}, "gs:/bkt/x", nil, errUsage},
		{[]string{"a"}, "gs://", nil, errUsage},
		{[]string{"a"}, "gs:///x", nil, errUsage},
		{[]string{"a"}, "gs://b/x", nil, session.ErrInvalid},
		{[]string{"a"}, "gs://b kt/x", nil, session.ErrInvalid},
		{[]string{"a"}, "gs://bkt/" + long + "y", nil, session.ErrInvalid},
		{[]string{"a"}, "gs://bkt/\xff", nil, session.ErrInvalid},
	} {
		got, err := plan(c.sources, c.destination)
		if !errors.Is(err, c.err) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("plan(%q, %q) = %v, %v, want %v, %v", c.sources, c.destination, got, err, c.want, c.err)
		}
		if err != nil && classify(err).code != exitUsage {
			t.Errorf("plan(%q, %q): exit code %d, want %d", c.sources, c.destination, classify(err).code, exitUsage)
		}
	}
}
