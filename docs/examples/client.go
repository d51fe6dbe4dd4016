package examples

import (
	"net/http"

	"golang.org/x/oauth2"

	"gcsup/upload"
)

// NewUploader returns an Uploader that uses the program's own credentials. The
// program then links no Google SDK. Use one http.Client for all Uploaders, because
// they share its connections.
func NewUploader(tokens oauth2.TokenSource, opts *upload.Options) (*upload.Uploader, *http.Client, error) {
	client := &http.Client{Transport: &oauth2.Transport{
		Source: oauth2.ReuseTokenSource(nil, tokens),
		Base:   upload.NewTransport(nil),
	}}
	up, err := upload.New(client, opts)
	return up, client, err
}
