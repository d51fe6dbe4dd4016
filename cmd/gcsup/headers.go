package main

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// headerFlag collects --additional-headers. A value may be a secret, and pflag
// prints the values that Set refuses: so Set takes all, and header tells later.
type headerFlag []string

func (h *headerFlag) Set(text string) error { *h = append(*h, text); return nil }
func (h *headerFlag) Type() string          { return "KEY=VALUE" }
func (h *headerFlag) String() string        { return "" }

// reservedHeaders are the headers that the protocol sets itself.
var reservedHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Expect", "Host",
	"Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Goog-Hash", "X-Guploader-No-308",
	"X-Upload-Content-Length", "X-Upload-Content-Type",
}

// header is what was given, or an error that names no value.
func (h headerFlag) header() (http.Header, error) {
	header := http.Header{}
	for _, text := range h {
		r := csv.NewReader(strings.NewReader(text))
		pairs, err := r.Read()
		if err != nil || strings.ContainsAny(text, "\r\n") {
			return nil, usagef("--additional-headers: want KEY=VALUE[,KEY=VALUE...]; a pair whose value has a comma stands in double quotes: '\"KEY=A,B\"'")
		}
		for _, pair := range pairs {
			key, value, ok := strings.Cut(pair, "=")
			switch {
			case !ok || key == "":
				return nil, usagef("--additional-headers: want KEY=VALUE (its text is not shown here, it may be a secret)")
			case !httpguts.ValidHeaderFieldName(key):
				return nil, usagef("--additional-headers: a key is not a header name (it is not shown here, it may be a secret)")
			case slices.Contains(reservedHeaders, http.CanonicalHeaderKey(key)):
				return nil, usagef("--additional-headers: %s belongs to the upload protocol and cannot be set", http.CanonicalHeaderKey(key))
			case !httpguts.ValidHeaderFieldValue(value):
				return nil, usagef("--additional-headers: the value of %s has characters that no header may have", http.CanonicalHeaderKey(key))
			}
			header.Add(key, value)
		}
	}
	return header, nil
}
