package breaker

import "strings"

// ObjectRateLimit reports whether a reply means that one object was changed too often
// (https://cloud.google.com/storage/docs/gcs429). The service uses the same status and
// reason for limits on all requests. Only the message differs. In the XML API, the
// element Details has the message; it was recorded once:
// https://github.com/nextcloud/server/issues/12537.
func ObjectRateLimit(code int, reason, message string) bool {
	limited := code == 429 || code == 403 && reason == "rateLimitExceeded"
	return limited && (strings.HasPrefix(message, "The object ") || strings.HasPrefix(message, "Changing object "))
}
