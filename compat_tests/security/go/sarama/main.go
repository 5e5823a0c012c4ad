// Writes a record by sarama and reads it, as somebody. Its users bring SCRAM themselves.
package main

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"wirebroker/secured/told"
)

func main() {
	login := told.Read()
	client, err := sarama.NewClient([]string{login.Address}, config(login))
	if err != nil {
		told.Refused(err)
	}
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		told.Refused(err)
	}
	message := &sarama.ProducerMessage{Topic: login.Topic, Value: sarama.StringEncoder("one")}
	if _, _, err = producer.SendMessage(message); err != nil {
		told.Refused(err)
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		told.Refused(err)
	}
	partition, err := consumer.ConsumePartition(login.Topic, 0, sarama.OffsetOldest)
	if err != nil {
		told.Refused(err)
	}
	select {
	case found := <-partition.Messages():
		fmt.Println("read", found.Offset)
	case failed := <-partition.Errors():
		told.Refused(failed)
	}
}

func config(login told.Login) *sarama.Config {
	all := sarama.NewConfig()
	all.Producer.Return.Successes = true
	all.Consumer.Return.Errors = true
	all.Net.TLS.Config = login.TLS()
	all.Net.TLS.Enable = all.Net.TLS.Config != nil
	if login.Mechanism == "" {
		return all
	}
	all.Net.SASL.Enable = true
	all.Net.SASL.Mechanism = sarama.SASLMechanism(login.Mechanism)
	all.Net.SASL.User, all.Net.SASL.Password = login.User, login.Password
	all.Net.SASL.TokenProvider = tokens(login.Token)
	all.Net.SASL.GSSAPI = sarama.GSSAPIConfig{
		AuthType:           sarama.KRB5_KEYTAB_AUTH,
		KeyTabPath:         login.Keytab,
		KerberosConfigPath: login.Config,
		ServiceName:        login.Service,
		Username:           login.User,
		Realm:              login.Realm,
	}
	all.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		if login.Mechanism == "SCRAM-SHA-256" {
			return &exchange{hash: scram.SHA256}
		}
		return &exchange{hash: scram.SHA512}
	}
	return all
}

type tokens string

func (token tokens) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(token)}, nil
}

type exchange struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func (one *exchange) Begin(user, password, authorization string) error {
	client, err := one.hash.NewClient(user, password, authorization)
	if err != nil {
		return err
	}
	one.ClientConversation = client.NewConversation()
	return nil
}
