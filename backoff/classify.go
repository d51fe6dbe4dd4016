package backoff

import "fmt"

// A Verdict is the reaction to a failure.
type Verdict int

const (
	// Permanent failures are not retried. Permanent is the zero value, so that
	// an unclassified failure is not retried.
	Permanent Verdict = iota

	// Transient failures are retried after a wait.
	Transient

	// Credentials failures are retried once, with refreshed credentials. If the
	// retry fails in the same way, the failure is permanent.
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
// JSON error body, or "" if there is none
// (https://cloud.google.com/storage/docs/json_api/v1/status-codes).
//
// 408, 429 and 5xx are Transient, as in Google's retry strategy. 403 is
// Transient if the reason is rateLimitExceeded or userRateLimitExceeded,
// because many Google APIs use it like 429. The reason dailyLimitExceeded is
// Permanent with any status, because no wait under a minute is long enough. 401
// is Credentials. Every other status is Permanent.
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
