package backoff_test

import (
	"testing"

	"gcsup/backoff"
)

func TestStatus(t *testing.T) {
	const permanent, transient, credentials = backoff.Permanent, backoff.Transient, backoff.Credentials
	tests := []struct {
		code   int
		reason string
		want   backoff.Verdict
	}{
		{0, "", permanent},
		{200, "", permanent},
		{308, "", permanent},
		{400, "", permanent},
		{400, "badRequest", permanent},
		{401, "", credentials},
		{401, "authError", credentials},
		{403, "", permanent},
		{403, "forbidden", permanent},
		{403, "insufficientPermissions", permanent},
		{403, "rateLimitExceeded", transient},
		{403, "userRateLimitExceeded", transient},
		{403, "dailyLimitExceeded", permanent},
		{403, "quotaExceeded", permanent},
		{404, "notFound", permanent},
		{404, "rateLimitExceeded", permanent},
		{407, "", permanent},
		{408, "", transient},
		{408, "uploadBrokenConnection", transient},
		{409, "conflict", permanent},
		{410, "", permanent},
		{411, "", permanent},
		{412, "conditionNotMet", permanent},
		{413, "uploadTooLarge", permanent},
		{416, "", permanent},
		{429, "", transient},
		{429, "rateLimitExceeded", transient},
		{429, "dailyLimitExceeded", permanent},
		{499, "", permanent},
		{500, "backendError", transient},
		{501, "", transient},
		{502, "", transient},
		{503, "", transient},
		{504, "", transient},
		{505, "", transient},
		{599, "", transient},
		{600, "", permanent},
	}
	for _, test := range tests {
		if got := backoff.Status(test.code, test.reason); got != test.want {
			t.Errorf("Status(%d, %q) = %v, want %v", test.code, test.reason, got, test.want)
		}
	}
}
