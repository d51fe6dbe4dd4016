// Package secrettest has a session URI for tests, and checks that its secret is not
// shown.
package secrettest

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"gcsup/session"
	"gcsup/session/internal/secret"
)

// ID is the secret part of the session URI. Path is the session URI without scheme and
// host.
const (
	ID   = "ABPtcPqS3cretUpl0adId_-x7"
	Path = "/upload/storage/v1/b/bucket/o?uploadType=resumable&name=object&upload_id=" + ID
)

// URI returns the session URI at an endpoint.
func URI(endpoint string) session.URI { return session.URI(secret.New(endpoint + Path)) }

// In reports whether a text has the secret in a usable form: plain, escaped, in
// hexadecimal, or as numbers.
func In(text string) bool {
	lower := strings.ToLower(text)
	for _, form := range []string{
		ID, url.QueryEscape(ID), Path,
		fmt.Sprintf("%x", ID), fmt.Sprintf("% x", ID), strings.Trim(fmt.Sprint([]byte(ID)), "[]"), strings.Trim(fmt.Sprintf("%#v", []byte(ID)), "[]byte{}"),
	} {
		if strings.Contains(lower, strings.ToLower(form)) {
			return true
		}
	}
	return false
}

// Check prints, logs and marshals values that have a secret, and checks that the result does not have it.
// has reports whether a text has it; that of the URI is In.
func Check(t *testing.T, holders map[string]any, has func(text string) bool) {
	t.Helper()
	for name, holder := range holders {
		for how, text := range map[string]string{"printed": printed(holder), "logged": logged(holder), "marshaled": marshaled(holder)} {
			if text == "" || has(text) {
				t.Errorf("%s: %s: %s", name, how, text)
			}
		}
	}
}

// printed returns what the functions of package fmt print for a value.
func printed(holder any) string {
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%+s", "%#s", "%q", "%+q", "%#q", "%x", "%X", "% x", "%#x", "%d", "%+d", "%b", "%o", "%O", "%c", "%U", "%t", "%e", "%g", "%p", "%T", "%w", "%z", "%10s", "%.200s", "%-300v", "%050v"} {
		fmt.Fprintf(&out, verb+"\n", holder)
	}
	fmt.Fprintln(&out, holder)
	fmt.Fprint(&out, holder, holder, fmt.Errorf("%w", fmt.Errorf("%v", holder)))
	return out.String()
}

// logged returns what package slog logs of a value.
func logged(holder any) string {
	var out bytes.Buffer
	opts := &slog.HandlerOptions{AddSource: true}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, opts), slog.NewJSONHandler(&out, opts)} {
		log := slog.New(h).With("with", holder)
		log.Info("message", "holder", holder, slog.Group("group", "holder", holder))
		log.Error(fmt.Sprint(holder), slog.Any("any", holder), slog.Any("value", slog.AnyValue(holder).Resolve()))
	}
	return out.String()
}

// marshaled returns what the encoders of the standard library write for a value, and their
// errors.
func marshaled(holder any) string {
	var out bytes.Buffer
	data, err := json.Marshal(holder)
	fmt.Fprintf(&out, "%s %v\n", data, err)
	data, err = xml.Marshal(holder)
	fmt.Fprintf(&out, "%s %v\n", data, err)
	if m, ok := holder.(encoding.TextMarshaler); ok {
		data, err = m.MarshalText()
		fmt.Fprintf(&out, "%s %v\n", data, err)
	}
	err = gob.NewEncoder(&out).Encode(holder)
	fmt.Fprintln(&out, err)
	return out.String()
}
