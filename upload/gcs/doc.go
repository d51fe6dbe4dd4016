// Package gcs makes package upload work out of the box: credentials, endpoint
// and emulator as the official library finds them, and an HTTP transport tuned
// for uploads.
//
//	client, err := gcs.New(ctx, nil)
//	...
//	defer client.Close()
//	up, err := client.Uploader(&upload.Options{Store: store})
//	...
//	result, err := up.File(ctx, "disk.img", upload.Spec{Bucket: "my-bucket", Object: "disk.img"})
//
// The two calls are [New] and [Client.Uploader].
//
// # Credentials
//
// Application Default Credentials through golang.org/x/oauth2: the file that
// GOOGLE_APPLICATION_CREDENTIALS names, gcloud's, or the metadata server
// (https://cloud.google.com/docs/authentication/application-default-credentials).
// Service accounts, users, external accounts and impersonated service accounts
// work as far as their files describe them. A request that is answered with 401
// makes the next one use a new token.
//
// Credentials and Options.Header go to the configured scheme and host only, and
// credentials never over plain HTTP, except to this machine when a credentials
// file was named. No redirect is followed.
//
// A token service that is not reached is a [TokenServiceError], which names its
// host and can be retried. Credentials that are refused are
// [session.ErrCredentials].
//
// # Tracing
//
// The URL of a session is a secret, and tracing exports URLs. Wrap a tracing
// transport with [session.Traced]:
//
//	client, err := gcs.New(ctx, &gcs.Options{Transport: session.Traced(func(next http.RoundTripper) http.RoundTripper {
//		return otelhttp.NewTransport(next)
//	}, gcs.NewTransport())})
//
// # Retries
//
// [Classify] tells package backoff which errors of the official library are
// worth another try.
//
// # Emulators
//
// STORAGE_EMULATOR_HOST has the meaning that it has for the official library:
// HOST:PORT or SCHEME://HOST:PORT, no credentials. An endpoint that is set
// explicitly wins over it, and there are still no credentials.
//
// This package links cloud.google.com/go/storage, which looks at objects, and
// which [Client.Storage] hands out with the same endpoint and credentials. A
// program that must stay small can use package upload with an HTTP client of
// its own.
package gcs
