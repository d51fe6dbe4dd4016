package main

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"gcsup/internal/cli/exit"
)

// headerFlag collects --additional-headers. A value may be a secret, and pflag
// prints every value that Set refuses. Set therefore accepts all values, and
// header checks them.
type headerFlag []string

func (h *headerFlag) Set(text string) error { *h = append(*h, text); return nil }
func (h *headerFlag) Type() string          { return "KEY=VALUE" }
func (h *headerFlag) String() string        { return "" }

// reservedHeaders are the headers that the upload protocol sets.
var reservedHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Expect", "Host",
	"Range", "Te", "X-Goog-Encryption-Algorithm", "X-Goog-Encryption-Key", "X-Goog-Encryption-Key-Sha256", "Trailer", "Transfer-Encoding", "Upgrade", "X-Goog-Gcs-Idempotency-Token",
	"X-Goog-Hash", "X-Guploader-No-308", "X-Upload-Content-Length", "X-Upload-Content-Type",
}

// header parses the flag's values. Its errors contain none of them.
func (h headerFlag) header() (http.Header, error) {
	header := http.Header{}
	for _, text := range h {
		r := csv.NewReader(strings.NewReader(text))
		pairs, err := r.Read()
		if err != nil || strings.ContainsAny(text, "\r\n") {
			return nil, exit.Usagef("--additional-headers: want KEY=VALUE[,KEY=VALUE...]; put a pair whose value has a comma in double quotes: '\"KEY=A,B\"'")
		}
		for _, pair := range pairs {
			key, value, ok := strings.Cut(pair, "=")
			switch {
			case !ok || key == "":
				return nil, exit.Usagef("--additional-headers: want KEY=VALUE (the text may be a secret and is not shown)")
			case !httpguts.ValidHeaderFieldName(key):
				return nil, exit.Usagef("--additional-headers: a key is not a valid header name (it may be a secret and is not shown)")
			case slices.Contains(reservedHeaders, http.CanonicalHeaderKey(key)):
				return nil, exit.Usagef("--additional-headers: %s belongs to the upload protocol and cannot be set", http.CanonicalHeaderKey(key))
			case !httpguts.ValidHeaderFieldValue(value):
				return nil, exit.Usagef("--additional-headers: the value of %s has characters that are not valid in a header", http.CanonicalHeaderKey(key))
			}
			header.Add(key, value)
		}
	}
	return header, nil
}
