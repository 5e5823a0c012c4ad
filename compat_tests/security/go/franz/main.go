// Writes a record by franz-go and reads it, as somebody.
package main

import (
	"context"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"wirebroker/secured/told"
)

func main() {
	login := told.Read()
	options := []kgo.Opt{
		kgo.SeedBrokers(login.Address),
		kgo.DefaultProduceTopic(login.Topic),
		kgo.ConsumeTopics(login.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequestRetries(2),
	}
	if config := login.TLS(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	if login.Mechanism != "" {
		options = append(options, kgo.SASL(mechanism(login)))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), told.Patience)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		told.Refused(err)
	}
	if err := client.ProduceSync(ctx, kgo.StringRecord("one")).FirstErr(); err != nil {
		told.Refused(err)
	}
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		told.Refused(err)
	}
	fmt.Println("read", fetches.Records()[0].Offset)
}

func mechanism(login told.Login) sasl.Mechanism {
	switch login.Mechanism {
	case "PLAIN":
		return plain.Auth{User: login.User, Pass: login.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: login.User, Pass: login.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: login.User, Pass: login.Password}.AsSha512Mechanism()
	case "GSSAPI":
		return tickets(login)
	default:
		return oauth.Auth{Token: login.Token}.AsMechanism()
	}
}

func tickets(login told.Login) sasl.Mechanism {
	realm, err := config.Load(login.Config)
	if err != nil {
		panic(err)
	}
	key, err := keytab.Load(login.Keytab)
	if err != nil {
		panic(err)
	}
	return kerberos.Auth{
		Client:           client.NewWithKeytab(login.User, login.Realm, key, realm),
		Service:          login.Service,
		PersistAfterAuth: true, // one for all connections
	}.AsMechanism()
}
