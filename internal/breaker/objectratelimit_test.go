package breaker_test

import (
	"testing"

	"gcsup/internal/breaker"
)

func TestObjectRateLimit(t *testing.T) {
	const text = "The object bkt/obj exceeded the rate limit for object mutation operations (create, update, and delete). Please reduce your request rate. See https://cloud.google.com/storage/docs/gcs429."
	for _, tt := range []struct {
		code    int
		reason  string
		message string
		want    bool
	}{
		{429, "rateLimitExceeded", text, true},
		{429, "", text, true},
		{403, "rateLimitExceeded", text, true},
		{429, "SlowDown", "Changing object bkt/obj too quickly, please slow down (Please reduce your request rate)", true},
		{429, "SlowDown", "The object bkt/obj is changed too often (Please reduce your request rate)", true},
		{429, "SlowDown", "Please reduce your request rate.", false},
		{429, "rateLimitExceeded", "The rate limit for this project was exceeded.", false},
		{429, "rateLimitExceeded", "", false},
		{429, "", "The project exceeded the rate limit for creating and deleting buckets.", false},
		{503, "rateLimitExceeded", text, false},
		{403, "forbidden", text, false},
		{200, "", text, false},
	} {
		if got := breaker.ObjectRateLimit(tt.code, tt.reason, tt.message); got != tt.want {
			t.Errorf("ObjectRateLimit(%d, %q, %.20q) = %v", tt.code, tt.reason, tt.message, got)
		}
	}
}
