package examples

import (
	"net/http"

	"golang.org/x/oauth2"

	"gcsup/upload"
)

// NewUploader returns an Uploader with credentials of the program's own, which links
// no Google SDK. Use one http.Client for all Uploaders: it has the connections.
func NewUploader(tokens oauth2.TokenSource, opts *upload.Options) (*upload.Uploader, *http.Client, error) {
	client := &http.Client{Transport: &oauth2.Transport{
		Source: oauth2.ReuseTokenSource(nil, tokens),
		Base:   upload.NewTransport(),
	}}
	up, err := upload.New(client, opts)
	return up, client, err
}
