// Package gcs connects package upload to Cloud Storage. It finds credentials,
// endpoint and emulator as the official library does, and has an HTTP transport
// for uploads.
//
//	client, err := gcs.New(ctx, nil)
//	...
//	defer client.Close()
//	up, err := client.Uploader(&upload.Options{Store: store})
//	...
//	result, err := up.File(ctx, "disk.img", upload.Spec{Bucket: "my-bucket", Object: "disk.img"})
//
// The two calls are [New] and [Client.Uploader], or [NewUploader] for both.
//
// # Credentials
//
// [New] finds Application Default Credentials through golang.org/x/oauth2: the file in
// GOOGLE_APPLICATION_CREDENTIALS, the file of gcloud, or the metadata server
// (https://cloud.google.com/docs/authentication/application-default-credentials). Files
// of service accounts, users, external accounts (even with an X.509 certificate) and
// impersonated service accounts work. After a 401 the next request uses a new token.
//
// The access scopes of a Compute Engine machine limit its tokens. If they are the
// reason for a refusal, the error wraps a [session.ScopeError].
//
// Credentials and Options.Header go to the configured scheme and host only. Over
// plain HTTP, credentials go to this machine only, and only if
// [Options].CredentialsFile or GOOGLE_APPLICATION_CREDENTIALS names a file. No
// redirect is followed. If the service refuses a request that had no credentials,
// the error includes the reason why none were sent.
//
// If the token service is not reached, the error is a [TokenServiceError], which
// names its host and can be retried. If it refuses the credentials, the error wraps
// [session.ErrCredentials].
//
// # Tracing
//
// The session URI is a secret, and tracing exports URLs. Wrap a tracing transport
// with [session.Traced]:
//
//	client, err := gcs.New(ctx, &gcs.Options{Transport: session.Traced(func(next http.RoundTripper) http.RoundTripper {
//		return otelhttp.NewTransport(next)
//	}, upload.NewTransport(nil))})
//
// # Retries
//
// [Classify] reports to package backoff which errors of the official library can
// be retried.
//
// # Emulators
//
// STORAGE_EMULATOR_HOST works as for the official library: it is HOST:PORT or
// SCHEME://HOST:PORT, and no credentials are sent. If Options.Endpoint is set, the
// variable has no effect. In the official library, it disables credentials even then.
//
// # The official library
//
// [Client.Storage] returns a client of cloud.google.com/go/storage with the same endpoint
// and credentials. [NewSpec] and [ObjectAttrs] convert its types. A program that must stay
// small can use package upload with its own HTTP client.
package gcs
