package session_test

import (
	"errors"
	"strings"
	"testing"

	"gcsup/session"
)

// TestBucketNames checks the rules for the names of buckets.
func TestBucketNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, name := range []string{
		"abc", "my-bucket", "my_bucket", "1.2", "0-0", "example.com", long, "a." + long, "192.168.5", "192.168.5.400", "google-logs", "goog-x",
		long + "." + long + "." + long + "." + strings.Repeat("b", 30),
	} {
		if err := (session.Spec{Bucket: name, Object: "x"}).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"My-bucket": "lowercase letters", "my bucket": "lowercase letters", "a%b": "lowercase letters", "bücket": "lowercase letters", "a\nb": "lowercase letters", "a/b": "lowercase letters", "a?b": "lowercase letters",
		"a*b": "lowercase letters", "gs://bucket": "lowercase letters", "ab": "3-63 characters", long + "b": "3-63 characters", "a." + long + "b": "3-63 characters",
		long + "." + long + "." + long + "." + strings.Repeat("b", 31): "3-63 characters",
		"-abc": "start and end", "abc-": "start and end", "_abc": "start and end", "abc_": "start and end", ".abc": "start and end", "abc.": "start and end",
		"192.168.5.4": "IP address",
	} {
		err := session.Spec{Bucket: name, Object: "x"}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
