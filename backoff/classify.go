package backoff

import "fmt"

// A Verdict says what to do about a failure.
type Verdict int

const (
	// Permanent: waiting cures nothing. It is the zero value, so what nobody
	// has classified is not retried.
	Permanent Verdict = iota

	// Transient: wait, then try again.
	Transient

	// Credentials: refresh the credentials and try once more. If it is the
	// same with fresh ones, the failure is permanent.
	Credentials
)

// String returns the name of v in lower case, such as "transient".
func (v Verdict) String() string {
	switch v {
	case Permanent:
		return "permanent"
	case Transient:
		return "transient"
	case Credentials:
		return "credentials"
	}
	return fmt.Sprintf("Verdict(%d)", int(v))
}

// Status classifies an HTTP reply by its status code and by the reason in its
// JSON error body, "" if there is none
// (https://cloud.google.com/storage/docs/json_api/v1/status-codes).
//
// 408, 429 and 5xx are Transient, as Google's retry strategy has it, and so is
// 403 when the reason is rateLimitExceeded or userRateLimitExceeded, with which
// many Google APIs say 429. A daily limit is Permanent with any status: no wait
// under a minute outlasts it. 401 is Credentials, everything else Permanent.
func Status(code int, reason string) Verdict {
	switch {
	case reason == "dailyLimitExceeded":
		return Permanent
	case code == 408, code == 429, code >= 500 && code <= 599:
		return Transient
	case code == 403 && (reason == "rateLimitExceeded" || reason == "userRateLimitExceeded"):
		return Transient
	case code == 401:
		return Credentials
	}
	return Permanent
}
