package main

import (
	"strings"
	"testing"

	"gcsup/internal/cli/exitcode"
	"gcsup/internal/cli/failure"
)

func TestBucketNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, name := range []string{
		"abc", "my-bucket", "my_bucket", "1.2", "0-0", "example.com", long, "a." + long, "192.168.5", "192.168.5.400", "google-logs", "goog-x",
		long + "." + long + "." + long + "." + strings.Repeat("b", 30),
	} {
		if err := checkBucketName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"My-bucket": "lowercase letters", "my bucket": "lowercase letters", "a%b": "lowercase letters", "bücket": "lowercase letters", "a\nb": "lowercase letters",
		"a*b": "lowercase letters", "ab": "3-63 characters", long + "b": "3-63 characters", "a." + long + "b": "3-63 characters",
		long + "." + long + "." + long + "." + strings.Repeat("b", 31): "3-63 characters",
		"-abc": "start and end", "abc-": "start and end", "_abc": "start and end", "abc_": "start and end", ".abc": "start and end", "abc.": "start and end",
		"192.168.5.4": "IP address",
	} {
		err := checkBucketName(name)
		if err == nil || !strings.Contains(err.Error(), want) || failure.Classify(err).Code != exitcode.Usage {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
