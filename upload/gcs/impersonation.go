package gcs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// iamScope permits requests to the IAM credentials API.
const iamScope = "https://www.googleapis.com/auth/cloud-platform"

// impersonatedLifetime is the longest lifetime of a token that every service account allows.
const impersonatedLifetime = "3600s"

// impersonation gets the tokens of a service account with the tokens of other credentials. Package
// impersonate of google.golang.org/api supports only the default universe.
// https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken
type impersonation struct {
	ctx          context.Context
	client       *http.Client
	base         oauth2.TokenSource
	universe     string
	account      string
	delegates    []string
	quotaProject string // of base
}

// Token returns a new token of the service account.
func (i *impersonation) Token() (*oauth2.Token, error) {
	base, err := i.base.Token()
	if err != nil {
		return nil, err
	}
	resource := func(account string) string { return "projects/-/serviceAccounts/" + account }
	var request struct {
		Delegates []string `json:"delegates,omitempty"`
		Scope     []string `json:"scope"`
		Lifetime  string   `json:"lifetime"`
	}
	request.Scope, request.Lifetime = []string{scope}, impersonatedLifetime
	for _, account := range i.delegates {
		request.Delegates = append(request.Delegates, resource(account))
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	to := "https://iamcredentials." + i.universe + "/v1/" + resource(url.PathEscape(i.account)) + ":generateAccessToken"
	req, err := http.NewRequestWithContext(i.ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	base.SetAuthHeader(req)
	req.Header.Set("Content-Type", "application/json")
	if i.quotaProject != "" {
		req.Header.Set("X-Goog-User-Project", i.quotaProject)
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, errorLimit))
	if err != nil {
		return nil, err
	}
	var reply struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
		Error       struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	err = json.Unmarshal(data, &reply)
	switch {
	case resp.StatusCode != http.StatusOK:
		why := strings.TrimSuffix(strings.Join(strings.Fields(reply.Error.Message), " "), ".")
		return nil, fmt.Errorf("it answered %s: %s; the role roles/iam.serviceAccountTokenCreator on %s permits impersonation", resp.Status, why, i.account)
	case err != nil || reply.AccessToken == "":
		return nil, errors.New("it answered without a token")
	}
	return &oauth2.Token{AccessToken: reply.AccessToken, Expiry: reply.ExpireTime}, nil
}
