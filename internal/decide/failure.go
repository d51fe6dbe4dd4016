package decide

import (
	"fmt"
	"strings"
	"unicode"

	"gcsup/internal/breaker"
	"gcsup/session"
)

// Alone reports whether the failure concerns only one upload, and not the service: its session or its parts were
// lost, its object was changed too often, or an answer differs from what is known.
func Alone(e *session.Error) bool {
	_, differs := e.Err.(interface{ Differs() })
	return (e.Status == 404 || e.Status == 410) && e.FromService || differs || breaker.ObjectRateLimit(e.Status, e.Reason, e.Message)
}

// Protected reports whether the service refused to replace or delete the object at the destination because of a hold
// or a retention, and not because of a missing permission. For a hold the JSON API sends the reason of a missing
// permission, and only its text differs.
func Protected(e *session.Error) bool {
	if e.Status != 403 || !e.FromService {
		return false
	}
	switch strings.ToLower(e.Reason) { // the XML API begins them with a capital letter
	case "retentionpolicynotmet", "objectunderactivehold":
		return true
	case "forbidden":
		return strings.Contains(e.Message, "is under active ") && strings.Contains(e.Message, " hold ")
	}
	return false
}

// Permission returns the permission for objects that a refusal names, such as storage.objects.delete, or "". The
// service has it only in this text.
func Permission(e *session.Error) string {
	const prefix = "storage.objects."
	_, rest, _ := strings.Cut(e.Message, prefix)
	if end := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		rest = rest[:end]
	}
	if rest == "" {
		return ""
	}
	return prefix + rest
}

// Short describes a failure in a few words, for a progress line.
func Short(e *session.Error) string {
	if e.Status != 0 {
		return fmt.Sprint(e.Status)
	}
	return e.Cause()
}

// Text returns the text of e without its operation, for people who do not know the protocol.
func Text(e *session.Error) string {
	if e.Early || e.Op == "" {
		return e.Error()
	}
	return strings.TrimPrefix(e.Error(), string(e.Op)+": ")
}
